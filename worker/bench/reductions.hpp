// How fast the CPU's reductions are, beside loops written by hand.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/core/reduce_op.hpp"

namespace chorus::bench {

// Of the speed of a loop by hand, from this size on: below it the call through two pointers counts.
inline constexpr double least_ratio = 0.9;
inline constexpr std::uint64_t counts_from_bytes = 64u << 10;
// From this size on results are also written past the caches.
inline constexpr std::uint64_t streams_too_from_bytes = 4u << 20;

struct ReductionSpeed {
  ReduceOp op;
  Dtype dtype;
  std::uint64_t bytes;       // of each of the three vectors
  bool streams;              // past the caches, both
  double chorus_GBps;        // of all three vectors together, the median of the turns
  double hand_written_GBps;  // likewise, of the fastest loop by hand
  double ratio;              // the median of the turns' ratios
  bool same_bits;            // as every loop written by hand

  [[nodiscard]] bool is_fast_enough() const { return ratio >= least_ratio || bytes < counts_from_bytes; }
};

// Every dtype and operation (hand_written.hpp) at every size, one thread; avg over 3. `seconds` each, three times that
// where the first time is not fast enough: then the middle of three counts. bytes are multiples of 512. False where
// there are no loops for this processor.
bool measure_reductions(std::vector<std::uint64_t> const& bytes, double seconds,
                        std::function<void(ReductionSpeed const&)> const& visit);

}  // namespace chorus::bench
