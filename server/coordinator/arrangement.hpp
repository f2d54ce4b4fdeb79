// Ranks and roles from localities: the part of a group that can be computed without knowing anybody's name.
#pragma once

#include <span>
#include <vector>

#include "collectives/core/locality.hpp"
#include "collectives/model/cost.hpp"
#include "http/api/groups.hpp"

namespace chorus::coordinator {

struct Arrangement {
  std::vector<std::uint32_t> order;  // order[rank] is the index in the list that was given
  api::Stretch stretch;
  std::vector<std::vector<api::RoleInAlgorithm>> roles;  // by rank, one per algorithm
  std::vector<api::Selection> selection;
};

// Takes milliseconds for tens of workers and seconds for hundreds: not for the thread that answers heartbeats.
// At least one locality. Errors: PlanErrc.
[[nodiscard]] Result<Arrangement> arrange(std::span<Locality const> as_listed, model::Constants const& constants);

}  // namespace chorus::coordinator
