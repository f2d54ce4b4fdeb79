// Reduction in worker order, ((v0 op v1) op v2) op ..., at one rank: the same bits at whichever rank.
#pragma once

#include <cstdint>

#include "collectives/plan/algorithm.hpp"

namespace chorus::algorithms {

// `rank`, which computes the result of the chunk, takes the contribution of `turn`; call for turn 0, 1, ..., p - 1 in
// this order, its own included. p >= 2. The other ranks send theirs.
//
// In place the output still holds the own contribution, which waits for its turn or is yet to be sent. So the sum grows
// in the scratch chunk of the same number until the last contribution moves it to the output.
void reduce_in_turn(plan::Spec const& spec, plan::Rank rank, plan::Rank turn, std::uint32_t chunk, plan::Sink& sink);

// For Algorithm::scratch_chunks: in place, as many as the vector has.
[[nodiscard]] std::uint32_t scratch_in_turn(plan::Spec const& spec, std::uint32_t chunks);

}  // namespace chorus::algorithms
