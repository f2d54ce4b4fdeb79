// The source of time of the engine; tests supply their own.
#pragma once

#include <chrono>

namespace chorus::engine {

class Clock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  [[nodiscard]] virtual TimePoint now() = 0;

 protected:
  ~Clock() = default;
};

}  // namespace chorus::engine
