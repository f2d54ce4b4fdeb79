// Reduction in worker order, ((v0 op v1) op v2) op ..., at one rank: the same bits at every rank.
#pragma once

#include <cstdint>

#include "collectives/plan/algorithm.hpp"

namespace chorus::algorithms {

// Emits the step in which `rank`, which reduces the chunk, adds the contribution of rank `turn`. Call it for turn 0, 1,
// ..., p - 1 in this order, its own turn included; the other ranks send their contributions. p >= 2.
//
// In place the output still has the rank's own contribution, which waits for its turn or for its sends. So the sum
// grows in the scratch chunk of the same number until the last contribution moves it to the output.
void reduce_in_turn(plan::Spec const& spec, plan::Rank rank, plan::Rank turn, std::uint32_t chunk, plan::Sink& sink);

// For Algorithm::scratch_chunks: as many as the vector has in place, otherwise 0.
[[nodiscard]] std::uint32_t scratch_in_turn(plan::Spec const& spec, std::uint32_t chunks);

}  // namespace chorus::algorithms
