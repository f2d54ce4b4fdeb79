// Two-operand reductions as somebody would write them by hand for one processor: what the kernels of devices/ are held
// against.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/core/reduce_op.hpp"

namespace chorus::bench {

struct HandWritten {
  ReduceOp op;
  Dtype dtype;
  // dst[i] = a[i] (op) b[i]; elements is a multiple of 64. No overlap.
  void (*loop)(std::byte* dst, std::byte const* a, std::byte const* b, std::uint64_t elements);
};

// With AVX-512 or AVX2 intrinsics, whichever this processor has; empty without either.
[[nodiscard]] std::vector<HandWritten> hand_written_loops();

}  // namespace chorus::bench
