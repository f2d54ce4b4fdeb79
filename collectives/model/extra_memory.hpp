// Memory of a rank that a plan needs beyond its two buffers.
#pragma once

#include <cstdint>

#include "collectives/plan/algorithm.hpp"

namespace chorus::model {

// Returns the bytes of input, output and scratch beyond twice the larger buffer, of the rank that needs most. Every
// rank has twice the larger buffer anyway, for a tensor and its next version. Of many ranks only some are examined: the
// root, the ranks after it and the opposite one, the first, the middle and the last. Requires that the algorithm
// accepts the spec.
[[nodiscard]] std::uint64_t extra_bytes(plan::Algorithm const& algorithm, plan::Spec const& spec,
                                        std::uint64_t vector_bytes);

// No algorithm needs more than this many vectors.
inline constexpr std::uint64_t extra_vectors_max = 4;

}  // namespace chorus::model
