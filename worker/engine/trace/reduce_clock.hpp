// Measures how long reductions take. Only pieces that are long against two reads of the clock are timed, so a short
// call pays nothing.
#pragma once

#include <chrono>
#include <cstdint>

#include "collectives/core/run_statistics.hpp"

namespace chorus::engine {

class ReduceClock {
 public:
  static constexpr std::uint64_t piece_bytes_min = 64 << 10;

  // Runs `reduce`, which combines `operands` operands of `bytes` bytes each into one.
  template <class Reduce>
  void run(std::uint64_t bytes, std::uint64_t operands, Reduce const& reduce) {
    if (bytes < piece_bytes_min || operands < 2) return reduce();
    auto const begin = std::chrono::steady_clock::now();
    reduce();
    reduced_.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    reduced_.bytes += bytes * (operands - 1);
  }

  void reset() { reduced_ = {}; }
  [[nodiscard]] Reduced const& reduced() const { return reduced_; }

 private:
  Reduced reduced_;
};

}  // namespace chorus::engine
