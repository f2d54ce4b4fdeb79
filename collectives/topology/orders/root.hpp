// The best root: the worker with the cheapest links from and to the others.
#pragma once

#include <cstdint>

#include "collectives/topology/square_matrix.hpp"

namespace chorus::topology {

// The worker with the least sum of costs to and from all others (LinkMatrix::hop_seconds()); among equals the one whose
// farthest worker, there and back, is nearest; among those the first. Sums that differ by rounding only (relative 1e-9)
// are equal. Requires at least one worker. O(n^2).
[[nodiscard]] std::uint32_t root_of_least_cost(SquareMatrix const& costs);

}  // namespace chorus::topology
