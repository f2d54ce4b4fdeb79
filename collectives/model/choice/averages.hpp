// Averages of f32 and f64, whose sums some algorithms carry in wider numbers (docs/explanation/plans.md#averages). Of
// large ones auto takes another algorithm instead.
#pragma once

#include <cstdint>
#include <string_view>

#include "collectives/core/dtype.hpp"
#include "collectives/core/op.hpp"
#include "collectives/core/reduce_op.hpp"

namespace chorus::model {

// Returns true for averages of f32 or f64 from the size on where bytes cost more than latencies. Not for averages over
// several tensors per rank, which are never carried.
[[nodiscard]] bool is_large_average(Op op, ReduceOp reduce, Dtype dtype, std::uint64_t bytes);

// Returns the algorithm of members' calls for large averages, if the group's table has `of_sums`: the same, if it needs
// no wider numbers, otherwise one that does not.
[[nodiscard]] std::string_view algorithm_of_averages(Op op, std::string_view of_sums, std::uint32_t ranks);

}  // namespace chorus::model
