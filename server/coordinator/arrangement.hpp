// Ranks and roles from where members stand: the part of a group that can be computed without knowing anybody's name.
#pragma once

#include <vector>

#include "collectives/model/cost.hpp"
#include "http/api/groups.hpp"
#include "server/coordinator/standing.hpp"

namespace chorus::coordinator {

struct Arrangement {
  std::vector<std::uint32_t> order;  // order[rank] is the index in the list that was given
  api::Stretch stretch;
  std::vector<std::vector<api::RoleInAlgorithm>> roles;  // by rank, one per algorithm
  std::vector<api::Selection> selection;
  std::uint64_t segment_bytes = 0;  // as the network wants them
};

// What pairs measured scatters: a ring has to be faster than the one by locality by more than this share of it.
inline constexpr double measuring_noise = 0.1;

// Ranks follow locality; where pairs have measured, or GPUs join them, the ring of least cost over their links. Takes
// milliseconds for tens of workers and seconds for hundreds: not for the thread that answers heartbeats. At least one
// member. Errors: PlanErrc.
[[nodiscard]] Result<Arrangement> arrange(Standing const& as_listed, model::Constants const& constants);

}  // namespace chorus::coordinator
