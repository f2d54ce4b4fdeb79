// The end of one run on one rank, as the metrics count it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "collectives/core/dtype.hpp"
#include "collectives/core/op.hpp"
#include "collectives/core/wire_format.hpp"

namespace chorus::metrics {

struct FinishedRun {
  Op op = Op::all_reduce;
  std::string_view algorithm;
  std::string_view result;  // succeeded, failed, cancelled
  std::string_view kind;    // the code of the problem, unless it succeeded
  std::uint32_t ranks = 1;
  std::uint64_t bytes = 0;  // of the vector, see bus_factor
  std::optional<WireFormat> compression;
  std::uint64_t wire_bytes = 0;  // with compression: of the codes of the vector
  double seconds = 0;
  std::uint32_t steps = 0;  // instructions run
  double wait_seconds = 0;  // waiting for peers
  Dtype dtype = Dtype::f32;
  std::uint64_t reduced_bytes = 0;  // operands of the reductions that were timed
  double reduce_seconds = 0;
  std::uint64_t gpu_reduced_bytes = 0;  // operands of kernels
  double gpu_reduce_seconds = 0;        // of these kernels and of copies within the GPU
};

}  // namespace chorus::metrics
