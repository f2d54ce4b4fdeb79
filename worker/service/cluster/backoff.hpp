// Pauses between attempts that many processes make: longer after each failure, up to a limit, and random, so that
// processes that failed together do not retry together.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>

namespace chorus::service {

// One thread at a time.
class Backoff {
 public:
  // 0 < shortest <= longest. Equal seeds give equal pauses.
  Backoff(std::chrono::milliseconds shortest, std::chrono::milliseconds longest, std::uint64_t seed);

  // A random time from half the current pause to one and a half of it; doubles the pause for the next call.
  [[nodiscard]] std::chrono::milliseconds next();
  void reset() { pause_ = shortest_; }
  // Applies the same randomness to a pause that does not grow.
  [[nodiscard]] std::chrono::milliseconds part_of(std::chrono::milliseconds pause);

 private:
  std::chrono::milliseconds shortest_;
  std::chrono::milliseconds longest_;
  std::chrono::milliseconds pause_;
  std::mt19937_64 random_;
};

}  // namespace chorus::service
