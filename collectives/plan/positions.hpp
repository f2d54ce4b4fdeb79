// Ranks and positions. A rank is what callers name: in members, roots, blocks and answers. A position is a place in the
// picture of an algorithm: neighbours on a ring, parents in trees, coordinates in a grid. Positions follow the network,
// ranks may follow something else; Spec::by_position says which rank is where.
//
// Blocks lie in memory by rank. Chunks are numbered by position (holding.hpp, layout.hpp), so that a range of positions
// is a range of chunks, though it may be several pieces of memory.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/plan/algorithm.hpp"
#include "collectives/plan/spec.hpp"

namespace chorus::plan {

// position < spec.ranks.
[[nodiscard]] inline Rank rank_at_position(Spec const& spec, std::uint32_t position) {
  return spec.by_position.empty() ? position : spec.by_position[position];
}

// rank < spec.ranks. Takes time of p where by_position is not empty.
[[nodiscard]] std::uint32_t position_of(Spec const& spec, Rank rank);

// What the algorithm plans: the positions taken for the ranks. check(spec) is ok.
[[nodiscard]] Spec by_positions(Spec const& spec);

// The spec with these ranks at the positions. Without by_position where rank i is at position i, and where the
// algorithm takes contributions in the order of ranks, in which the network has no part. Every rank once.
[[nodiscard]] Spec with_positions(Algorithm const& algorithm, Spec spec, std::vector<Rank> by_position);

}  // namespace chorus::plan
