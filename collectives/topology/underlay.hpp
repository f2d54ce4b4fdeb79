// The physical network under an overlay: nodes (workers, switches, routers) and the cables between them.
//
// Source: the textbook chapter on collectives and their overlay and underlay topologies: a virtual link of the overlay
// ring may travel over several links of the underlay.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "collectives/core/result.hpp"
#include "collectives/topology/square_matrix.hpp"

namespace chorus::topology {

inline constexpr std::uint32_t max_underlay_nodes = 1u << 20;

struct Underlay {
  std::uint32_t nodes = 0;                                     // 0..nodes-1
  std::vector<std::pair<std::uint32_t, std::uint32_t>> links;  // in both directions; a repeated one counts once
};

// Distances in underlay hops by shortest paths: entry (i, j) is between workers[i] and workers[j], which are nodes.
// Errors: PlanErrc::bad_parameter for too many nodes, a link or worker that is no node, a repeated worker, no or more
// than max_matrix_workers workers, or two workers without a path between them, which are named. O(workers * links).
[[nodiscard]] Result<SquareMatrix> hop_counts(Underlay const& underlay, std::span<std::uint32_t const> workers);

}  // namespace chorus::topology
