// Measures how well an overlay ring fits the underlying network.
#pragma once

#include <cstdint>
#include <span>

#include "collectives/topology/square_matrix.hpp"

namespace chorus::topology {

// The average stretch of the ring order[0] -> order[1] -> ... -> order[0]: the mean, over its p hops, of the hop's
// distance divided by `unit`, the least possible distance of a hop.
//
// Over hop_counts() with unit 1 it is the textbook's: underlay hops per overlay hop (3.5 for its bad numbering, 2.5 for
// its good one). Over LinkMatrix::hop_seconds() with unit least_hop() it is 1 exactly if every hop is as cheap as the
// cheapest. 0 for fewer than two workers, whose ring has no hops. order is a permutation of 0..p-1; unit > 0.
[[nodiscard]] double average_stretch(SquareMatrix const& distances, std::span<std::uint32_t const> order, double unit);

// The least distance between two different workers, 0 if there are fewer than two.
[[nodiscard]] double least_hop(SquareMatrix const& distances);

}  // namespace chorus::topology
