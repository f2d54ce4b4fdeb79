// How fast the optimizers' steps are on one core, beside loops written by hand.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace chorus::bench {

struct StepSpeed {
  std::string_view optimizer;
  std::uint64_t bytes;       // of each of the arrays
  double chorus_GBps;        // of everything that is read and written, the median of the turns
  double hand_written_GBps;  // in turns with the other
  bool same_bits;            // as the loop written by hand, values and state
};

// Every step written by hand (hand_written_steps.hpp) at every size, f32, one thread. `seconds` each. bytes are
// multiples of 256.
[[nodiscard]] std::vector<StepSpeed> measure_steps(std::vector<std::uint64_t> const& bytes, double seconds);

}  // namespace chorus::bench
