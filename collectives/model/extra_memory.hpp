// What a plan takes of a rank's memory beyond what everybody has to have.
#pragma once

#include <cstdint>

#include "collectives/plan/algorithm.hpp"

namespace chorus::model {

// Bytes of input, output and scratch, of the rank that needs most beyond its larger buffer twice: that much it has for
// a tensor and the next version of it. Of many ranks only some are looked at: the root, those after it and the one
// half a round from it, the first, the middle and the last one. Requires that the algorithm accepts the spec.
[[nodiscard]] std::uint64_t extra_bytes(plan::Algorithm const& algorithm, plan::Spec const& spec,
                                        std::uint64_t vector_bytes);

// No algorithm takes more than that many vectors.
inline constexpr std::uint64_t extra_vectors_max = 4;

}  // namespace chorus::model
