// How long reductions take. Only pieces that are long against two looks at the clock are timed: a short call pays
// nothing.
#pragma once

#include <chrono>
#include <cstdint>

namespace chorus::engine {

// Of one run: bytes of operands that were combined with others, in pieces that were timed.
struct Reduced {
  std::uint64_t bytes = 0;
  double seconds = 0;
};

class ReduceClock {
 public:
  static constexpr std::uint64_t piece_bytes_min = 64 << 10;

  // `reduce` combines so many operands of so many bytes each into one.
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
