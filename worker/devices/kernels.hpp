// The reduction kernels, compiled once per instruction set; reduce.cpp picks the table at run time.
#pragma once

#include <array>
#include <cstdint>

#include "worker/devices/fold.hpp"
#include "worker/devices/reduce.hpp"

namespace chorus::devices {

// The kernels of one instruction set. Plain arrays: see the note on weak symbols in lanes.inc.
struct Kernels {
  char const* name = nullptr;
  Combine combine[all_reduce_ops.size()][dtypes_count] = {};
  Fold fold[all_reduce_ops.size()][dtypes_count] = {};
  FoldAverage fold_average[dtypes_count] = {};  // null for f16, bf16 and blocks
  Divide divide[dtypes_count] = {};
  HalfCombine half_combine[all_reduce_ops.size()][dtypes_count][2][2] = {};  // by the widths of a and dst
  FoldHalves fold_halves[all_reduce_ops.size()][dtypes_count][2][2] = {};    // by widths of source and results
  Widen widen[dtypes_count] = {};
  Widen decode[dtypes_count] = {};         // null except for blocks
  EncodeBlocks encode[dtypes_count] = {};  // null except for blocks
};

[[nodiscard]] Kernels const& baseline_kernels();
#if defined(__x86_64__)
[[nodiscard]] Kernels const& avx2_kernels();
[[nodiscard]] Kernels const& avx512_kernels();
#endif

// Returns the kernels that this processor can run, the fastest last; unused entries are null.
[[nodiscard]] std::array<Kernels const*, 3> const& runnable_kernels();

}  // namespace chorus::devices
