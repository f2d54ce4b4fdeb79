// Makes events from changes of workers and groups.
#pragma once

#include <string>

#include "http/api/cluster/events.hpp"
#include "server/coordinator/groups/groups.hpp"
#include "server/coordinator/membership/membership.hpp"

namespace chorus::coordinator {

// `type`: like "worker.joined" or "group.degraded". `why`: may be "".
[[nodiscard]] api::Event event_of(Worker const& worker, char const* type, std::string const& why);
[[nodiscard]] api::Event event_of(api::Group const& group, char const* type, std::string const& why);
// A member has become slow, or is no longer slow.
[[nodiscard]] api::Event event_of(api::Group const& group, api::SlowMember const& member, bool is_slow);

}  // namespace chorus::coordinator
