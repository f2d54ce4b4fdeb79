// Good balanced trees of any size, made by bisecting clusters.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/topology/square_matrix.hpp"

namespace chorus::topology {

// A balanced tree (link_trees.hpp): Kernighan-Lin cuts over `ties` give the first version; then its workers are
// exchanged as long as the sum of `merits` over its links grows, sometimes through a few exchanges at a loss (iterated
// local search). Both matrices are symmetric; ties are not negative, merits may be. Returns the parents; parent[root]
// is root.
[[nodiscard]] std::vector<std::uint32_t> clustered_tree(SquareMatrix const& ties, SquareMatrix const& merits,
                                                        std::uint32_t root, std::uint32_t ways);

}  // namespace chorus::topology
