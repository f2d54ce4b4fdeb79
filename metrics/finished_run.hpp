// How one run ended on one rank: what is counted of it.
#pragma once

#include <cstdint>
#include <string_view>

#include "collectives/core/dtype.hpp"
#include "collectives/core/op.hpp"

namespace chorus::metrics {

struct FinishedRun {
  Op op = Op::all_reduce;
  std::string_view algorithm;
  std::string_view result;  // succeeded, failed, cancelled
  std::string_view kind;    // the code of the problem, unless it succeeded
  std::uint32_t ranks = 1;
  std::uint64_t bytes = 0;  // of the vector, see bus_factor
  double seconds = 0;
  std::uint32_t steps = 0;  // instructions run
  double wait_seconds = 0;  // for peers
  Dtype dtype = Dtype::f32;
  std::uint64_t reduced_bytes = 0;  // operands in pieces that were worth a look at the clock, and what these took
  double reduce_seconds = 0;
  std::uint64_t gpu_reduced_bytes = 0;  // operands of kernels, and what these took, copies within the GPU included
  double gpu_reduce_seconds = 0;
};

}  // namespace chorus::metrics
