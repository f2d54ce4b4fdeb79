// The members of runs whose requests do not name them: those of the group's epoch.
#pragma once

#include <optional>

#include "http/api/collectives/runs.hpp"
#include "http/json/problem.hpp"
#include "worker/service/collectives/groups/group.hpp"

namespace chorus::service {

// Sets the members of a request without members. `epoch`: the present one of the request's group, null if this worker
// is no member. Problem epoch_fenced: it is not the request's epoch.
[[nodiscard]] std::optional<http::Problem> name_members(api::RunRequest& request, GroupEpoch const* epoch);

}  // namespace chorus::service
