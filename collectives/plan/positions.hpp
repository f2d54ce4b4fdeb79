// Conversion between ranks and positions. Callers name ranks: in members, roots, blocks and answers. Algorithms name
// positions: neighbours on a ring, parents in trees, coordinates in a grid. Positions follow the network, ranks may
// have another order; Spec::by_position has the rank at each position.
//
// Blocks lie in memory by rank. Chunks are numbered by position (holding.hpp, sizes/layout.hpp), so that a range of
// positions is a range of chunks, though it may be several pieces of memory.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/plan/algorithm.hpp"
#include "collectives/plan/spec.hpp"

namespace chorus::plan {

// Returns the rank at a position. position < spec.ranks.
[[nodiscard]] inline Rank rank_at_position(Spec const& spec, std::uint32_t position) {
  return spec.by_position.empty() ? position : spec.by_position[position];
}

// Returns the position of a rank. rank < spec.ranks. Takes time O(p) if by_position is not empty.
[[nodiscard]] std::uint32_t position_of(Spec const& spec, Rank rank);

// Returns the spec for the algorithm, with positions instead of ranks. check(spec) is ok.
[[nodiscard]] Spec by_positions(Spec const& spec);

// Returns the spec with these ranks at the positions; `by_position` has every rank once. Leaves by_position empty if
// rank i is at position i, or if the algorithm takes contributions in rank order, whatever the network is.
[[nodiscard]] Spec with_positions(Algorithm const& algorithm, Spec spec, std::vector<Rank> by_position);

}  // namespace chorus::plan
