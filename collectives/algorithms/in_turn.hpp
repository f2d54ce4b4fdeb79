// Reduction in worker order, ((v0 op v1) op v2) op ..., at one rank: the same bits wherever it is done.
#pragma once

#include <cstdint>

#include "collectives/plan/algorithm.hpp"

namespace chorus::algorithms {

// `rank` takes the contribution of `turn` to a chunk of which it computes the result: to be called for turn 0, 1, ...,
// p - 1, its own included, in this order. p >= 2. The other ranks send theirs.
//
// In place the output still holds the own contribution, which waits for its turn or is yet to be sent. So the sum grows
// in the scratch chunk of the same number until the last contribution brings it to the output.
void reduce_in_turn(plan::Spec const& spec, plan::Rank rank, plan::Rank turn, std::uint32_t chunk, plan::Sink& sink);

// For Algorithm::scratch_chunks: as many as the vector has, in place.
[[nodiscard]] std::uint32_t scratch_in_turn(plan::Spec const& spec, std::uint32_t chunks);

}  // namespace chorus::algorithms
