// Reductions of typed memory on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/core/dtype.hpp"
#include "collectives/core/reduce_op.hpp"

namespace chorus::devices {

// dst[i] = a[i] (op) b[i] for i in 0..elements. dst may be a or b; otherwise no overlap. All memory may begin at any
// byte. Integers wrap (two's complement); min and max of a NaN give NaN.
using Combine = void (*)(std::byte* dst, std::byte const* a, std::byte const* b, std::uint64_t elements);

// dst[i] = dst[i] / divisor, integers truncating towards zero: the last step of avg.
using Divide = void (*)(std::byte* dst, std::uint64_t elements, std::uint32_t divisor);

// Arithmetic on f16, bf16 and blocks with partial sums kept in f32: dst[i] = (a[i] (op) b[i]) / divisor, computed in
// f32 and rounded once, if dst is narrow. `a` and `dst` are each f32 (wide) or of the dtype (narrow), `b` is of the
// dtype. dst may be a or b if it is as wide.
using HalfCombine = void (*)(std::byte* dst, std::byte const* a, std::byte const* b, std::uint64_t elements,
                             float divisor);
enum class Width : std::uint8_t { narrow, wide };

// Converts f16, bf16 or blocks to f32 (wide_bytes() per element); no overlap.
using Widen = void (*)(std::byte* dst, std::byte const* src, std::uint64_t elements);

// Converts f32 to blocks. `values`: 252 for each block, without gaps, and four more that can be read.
using EncodeBlocks = void (*)(std::byte* blocks, std::byte const* values, std::uint64_t count);

// Null for dtypes other than f16, bf16 and blocks, and for operations that they do not have: bit operations, of blocks
// all but sum and avg.
[[nodiscard]] HalfCombine find_half_combine(ReduceOp op, Dtype dtype, Width a, Width dst);
[[nodiscard]] Widen find_widen(Dtype dtype);

// For blocks only. Decoded values have no gaps; the last block writes four floats more.
[[nodiscard]] EncodeBlocks find_encode(Dtype block);
[[nodiscard]] Widen find_decode(Dtype block);

// Null for unsupported pairs (bit operations on floats; dtypes without kernels in this build). `avg` combines like sum.
[[nodiscard]] Combine find_combine(ReduceOp op, Dtype dtype);
[[nodiscard]] Divide find_divide(Dtype dtype);

}  // namespace chorus::devices
