// Signs of life of another process of the host: the pulse in the head of its memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace chorus::engine {

// One for each process that is looked at. A value.
class PulseWatch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit PulseWatch(std::chrono::milliseconds silence) : silence_(silence) {}

  // Returns how long the pulse has stood still, if that is longer than the silence that is allowed. Time in which
  // nobody looked does not count: then this process may have been stopped too. A pulse of 0 says nothing: the process
  // has no pulse, or none yet.
  [[nodiscard]] std::optional<std::chrono::milliseconds> look(std::uint32_t pulse, TimePoint now) {
    bool const has_paused = now - looked_ >= silence_ / 5;
    looked_ = now;
    if (pulse == 0 || pulse != pulse_ || has_paused) {
      pulse_ = pulse;
      still_since_ = now;
      return std::nullopt;
    }
    if (now - still_since_ < silence_) return std::nullopt;
    return std::chrono::duration_cast<std::chrono::milliseconds>(now - still_since_);
  }

 private:
  std::chrono::milliseconds silence_;
  std::uint32_t pulse_ = 0;
  TimePoint looked_, still_since_;
};

}  // namespace chorus::engine
