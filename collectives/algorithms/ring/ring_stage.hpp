// Reduce-scatter and all-gather around a ring of some of the ranks, as stages of other algorithms.
#pragma once

#include <cstdint>

#include "collectives/plan/algorithm.hpp"
#include "collectives/plan/holding.hpp"

namespace chorus::algorithms {

// One rank's place in the ring, which has at least two members.
struct RingMember {
  std::uint32_t index = 0;
  std::uint32_t size = 2;
  plan::Rank next = 0;
  plan::Rank previous = 0;
};

// Emits a step of size - 1 of a reduce-scatter. The parts of `vector` are its `size` equal ranges of chunks; at the end
// member i holds the sum of part i. `untouched`: this rank's contribution is still in its input.
void emit_ring_reduce_scatter(RingMember const& member, std::uint32_t step, plan::ChunkRange vector, bool untouched,
                              plan::Final final, plan::Sink& sink);
// Emits a step of size - 1 of an all-gather, which begins with part i at member i.
void emit_ring_all_gather(RingMember const& member, std::uint32_t step, plan::ChunkRange vector, plan::Sink& sink);

}  // namespace chorus::algorithms
