// How fast the CPU's reductions are, beside a loop written by hand.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/core/reduce_op.hpp"

namespace chorus::bench {

struct ReductionSpeed {
  ReduceOp op;
  Dtype dtype;
  std::uint64_t bytes;       // of each of the three vectors
  double chorus_GBps;        // of all three vectors together, the median of the turns
  double hand_written_GBps;  // in turns with the other
  bool same_bits;            // as the loop written by hand
};

// Every hand-written loop (hand_written.hpp) at every size, one thread. `seconds` each. bytes are multiples of 512.
[[nodiscard]] std::vector<ReductionSpeed> measure_reductions(std::vector<std::uint64_t> const& bytes, double seconds);

}  // namespace chorus::bench
