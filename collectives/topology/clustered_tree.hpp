// A good balanced tree of any size, by cutting clusters.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/topology/square_matrix.hpp"

namespace chorus::topology {

// The balanced tree (link_trees.hpp) that Kernighan-Lin cuts over `ties` suggest, its workers then exchanged as long as
// the sum of `merits` over its links grows, also by way of a few exchanges at a loss (iterated local search). Both
// matrices are symmetric, ties not negative; merits may be. Returns the parents; parent[root] is root.
[[nodiscard]] std::vector<std::uint32_t> clustered_tree(SquareMatrix const& ties, SquareMatrix const& merits,
                                                        std::uint32_t root, std::uint32_t ways);

}  // namespace chorus::topology
