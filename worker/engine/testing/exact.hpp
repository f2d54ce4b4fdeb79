// What the elements of a test's tensors are, and what they reduce to: the same bits in whatever order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/core/reduce_op.hpp"
#include "collectives/plan/spec.hpp"

namespace chorus::engine::testing {

// Integers come from their whole range and wrap, so that a rank that is left out shows, also with band and bor. Floats
// are whole numbers so small that no partial sum or product of up to 16 ranks is rounded, in f16 and bf16 neither, and
// the average is rounded once.
[[nodiscard]] std::vector<std::byte> exact_values(Dtype dtype, ReduceOp reduce, plan::Rank rank,
                                                  std::uint64_t elements);
// Of those of ranks 0 to ranks - 1. Bit operations are of integers.
[[nodiscard]] std::vector<std::byte> exact_results(Dtype dtype, ReduceOp reduce, std::uint32_t ranks,
                                                   std::uint64_t elements);

}  // namespace chorus::engine::testing
