// What a plan keeps beside its vectors where these are f16 or bf16.
#pragma once

#include <cstdint>

#include "collectives/plan/algorithm.hpp"

namespace chorus::model {

// Bytes of partial sums in f32 (plan/passes.hpp, widen_partials) of the rank that keeps most. Of many ranks only some
// are looked at: the root and those after it, the first, the middle and the last one. Requires that the algorithm
// accepts the spec.
[[nodiscard]] std::uint64_t partial_bytes(plan::Algorithm const& algorithm, plan::Spec const& spec,
                                          std::uint64_t elements);

}  // namespace chorus::model
