// Two-operand reductions as somebody would write them by hand for one processor: what the kernels of devices/ are held
// against.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/core/dtype.hpp"
#include "collectives/core/reduce_op.hpp"

namespace chorus::bench {

struct HandWritten {
  // dst[i] = a[i] (op) b[i], of avg over the divisor, which is at least 3; elements is a multiple of 64. Memory is
  // aligned to 64 bytes; no overlap.
  using Loop = void (*)(std::byte* dst, std::byte const* a, std::byte const* b, std::uint64_t elements,
                        std::uint32_t divisor);
  ReduceOp op;
  Dtype dtype;
  Loop loop;
  Loop streaming;  // past the caches; null of loops that the compiler vectorized
};

// With AVX-512 or AVX2, whichever this processor has; empty without either. Of every dtype and operation there are one
// or two: of intrinsics, and a plain loop compiled for the instruction set. The faster one counts.
[[nodiscard]] std::span<HandWritten const> hand_written_loops();

// Those of a source file per instruction set; made of nothing that could be compiled for it elsewhere, too.
struct HandWrittenTable {
  HandWritten const* loops;
  std::size_t count;
};
[[nodiscard]] HandWrittenTable hand_written_avx2();
[[nodiscard]] HandWrittenTable hand_written_avx512();

}  // namespace chorus::bench
