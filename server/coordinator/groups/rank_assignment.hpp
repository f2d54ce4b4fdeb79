// Computes ranks and roles from the standing of members, without their names.
#pragma once

#include <vector>

#include "collectives/model/cost.hpp"
#include "http/api/collectives/groups.hpp"
#include "server/coordinator/groups/seniority.hpp"
#include "server/coordinator/topology/standing.hpp"

namespace chorus::coordinator {

struct RankAssignment {
  std::vector<std::uint32_t> order;        // order[rank] is the index in the given list
  std::vector<std::uint32_t> by_position;  // the rank at each position; empty: rank i is at position i
  api::Stretch stretch;
  // By rank, one per algorithm; empty above ranks_with_roles, because all roles together grow with the square.
  std::vector<std::vector<api::RoleInAlgorithm>> roles;
  std::vector<api::Selection> selection;
  std::vector<api::CompressionSelection> compression;
  std::uint64_t segment_bytes = 0;  // as the network needs them
};

inline constexpr std::size_t ranks_with_roles = 256;

// Noise of measurements: a ring must be faster than the one by locality by more than this share.
inline constexpr double measuring_noise = 0.1;

// Assigns ranks. Survivors keep their former order. Newcomers follow by locality, with ties in the order of seniority.
// In a group without survivors whose members have measured pairs or joined GPUs, the ranks follow the ring of least
// cost over these links. Where ranks are as listed, these rules order the positions. Takes milliseconds for tens of
// workers and seconds for hundreds, so it must not run on the thread that answers heartbeats. At least one member.
// Errors: PlanErrc.
[[nodiscard]] Result<RankAssignment> arrange(Standing const& as_listed, Seniority const& seniority,
                                             model::Constants const& constants);

// The roles of one rank of a group of any size. `standing` is in rank order, `table` the group's selection table. Takes
// milliseconds for thousands of ranks. Errors: PlanErrc.
[[nodiscard]] Result<std::vector<api::RoleInAlgorithm>> roles_of(Standing const& standing,
                                                                 std::vector<api::Selection> const& table,
                                                                 plan::Rank rank, model::Constants const& constants);

}  // namespace chorus::coordinator
