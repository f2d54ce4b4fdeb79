// The end of one run on one rank, as the metrics count it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "collectives/core/dtype.hpp"
#include "collectives/core/op.hpp"
#include "collectives/core/run_statistics.hpp"
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
  Dtype dtype = Dtype::f32;
  RunStatistics statistics;
  Reduced gpu_reduced;  // by kernels: the bytes of their operands; the time is also that of copies within the GPU
};

}  // namespace chorus::metrics
