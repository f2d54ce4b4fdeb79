// How well an overlay ring fits the network under it.
#pragma once

#include <cstdint>
#include <span>

#include "collectives/topology/square_matrix.hpp"

namespace chorus::topology {

// The average stretch of the ring order[0] -> order[1] -> ... -> order[0]: the mean, over its p hops, of the distance
// that the hop travels, divided by `unit`, the least that a hop can travel.
//
// Over hop_counts() with unit 1 it is the textbook's: underlay hops per overlay hop (3.5 for its bad numbering, 2.5 for
// its good one). Over LinkMatrix::hop_seconds() with unit least_hop() it is 1 exactly when every hop is as cheap as the
// cheapest there is. 0 for fewer than two workers: their ring has no hops. order is a permutation of 0..p-1; unit > 0.
[[nodiscard]] double average_stretch(SquareMatrix const& distances, std::span<std::uint32_t const> order, double unit);

// The least distance between two different workers, 0 where there are not two.
[[nodiscard]] double least_hop(SquareMatrix const& distances);

}  // namespace chorus::topology
