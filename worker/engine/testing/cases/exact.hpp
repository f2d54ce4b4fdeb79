// Elements for the tensors of a test whose reduction has the same bits in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/core/reduce_op.hpp"
#include "collectives/plan/spec.hpp"

namespace chorus::engine::testing {

// Returns the input of one rank. Integers come from their whole range and wrap, so that a missing rank shows, also in
// band and bor. Floats are whole numbers so small that no partial sum or product of up to 16 ranks is rounded, not even
// in f16 and bf16, and that the average is rounded once.
[[nodiscard]] std::vector<std::byte> exact_values(Dtype dtype, ReduceOp reduce, plan::Rank rank,
                                                  std::uint64_t elements);
// Returns the reduction of exact_values() of ranks 0 to ranks - 1. Bit operations take integers only.
[[nodiscard]] std::vector<std::byte> exact_results(Dtype dtype, ReduceOp reduce, std::uint32_t ranks,
                                                   std::uint64_t elements);

}  // namespace chorus::engine::testing
