// The kernels of Reducer and Codec, compiled once per instruction set.
#pragma once

#include <array>
#include <cstdint>

#include "worker/devices/reduce.hpp"

namespace chorus::devices {

// Converts f32 to blocks. `values`: 252 for each block, without gaps, and four more that can be read.
using EncodeBlocks = void (*)(std::byte* blocks, std::byte const* values, std::uint64_t count);
// Converts blocks to f32 without gaps. The last block writes four floats more.
using DecodeBlocks = void (*)(std::byte* values, std::byte const* blocks, std::uint64_t count);

// The kernels of one instruction set. Plain arrays: see the note on weak symbols in lanes.inc.
struct Kernels {
  char const* name = nullptr;
  Reducer::Kernel reduce[all_reduce_ops.size()][dtypes_count] = {};  // null where can_reduce() is false
  EncodeBlocks encode[dtypes_count] = {};                            // null except for blocks
  DecodeBlocks decode[dtypes_count] = {};                            // null except for blocks
};

[[nodiscard]] Kernels const& baseline_kernels();
#if defined(__x86_64__)
[[nodiscard]] Kernels const& avx2_kernels();
[[nodiscard]] Kernels const& avx512_kernels();
#endif

// Returns the kernels that this processor can run, the fastest last; unused entries are null.
[[nodiscard]] std::array<Kernels const*, 3> const& runnable_kernels();
// Returns the fastest of them.
[[nodiscard]] Kernels const& best_kernels();

}  // namespace chorus::devices
