// How long to wait before the next attempt at what many processes attempt: longer after each failure, up to a limit,
// and by chance, so that those that failed at one instant do not come back at one instant.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>

namespace chorus::service {

// A value of one thread.
class Backoff {
 public:
  // 0 < shortest <= longest. Two with one seed wait alike.
  Backoff(std::chrono::milliseconds shortest, std::chrono::milliseconds longest, std::uint64_t seed);

  // Half of the present pause, and up to as much again; doubles it for the next time.
  [[nodiscard]] std::chrono::milliseconds next();
  void reset() { pause_ = shortest_; }
  // The same chance for a pause that does not grow.
  [[nodiscard]] std::chrono::milliseconds part_of(std::chrono::milliseconds pause);

 private:
  std::chrono::milliseconds shortest_;
  std::chrono::milliseconds longest_;
  std::chrono::milliseconds pause_;
  std::mt19937_64 random_;
};

}  // namespace chorus::service
