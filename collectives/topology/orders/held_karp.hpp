// The cheapest tour, exactly.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/topology/square_matrix.hpp"

namespace chorus::topology {

// A tour of least cost, beginning with worker 0. O(2^n n^2) time and O(2^n n) memory for 1 to 16 workers.
[[nodiscard]] std::vector<std::uint32_t> cheapest_tour(SquareMatrix const& costs);

}  // namespace chorus::topology
