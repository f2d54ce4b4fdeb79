// Yielding for a polling thread: gives up the core only while other threads want it.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace chorus::engine {

// One thread at a time. A yield costs up to a microsecond in which no message is noticed. A yield that returns at once
// shows that no other thread wants the core: the next few looks skip it.
class AdaptiveYield {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr unsigned looks_alone = 8;
  static constexpr std::chrono::nanoseconds alone_max{2000};

  // Call after a look that found nothing.
  void give_way(TimePoint now) {
    if (alone_for_ != 0) {
      --alone_for_;
      return;
    }
    std::this_thread::yield();
    took(std::chrono::steady_clock::now() - now);
  }

  // Duration of a yield. Others ran if it was long, or twice as long as the shortest so far.
  void took(std::chrono::nanoseconds yield) {
    shortest_ = std::min(shortest_, yield);
    alone_for_ = yield < alone_max && yield < 2 * shortest_ ? looks_alone : 0;
  }
  [[nodiscard]] bool is_alone() const { return alone_for_ != 0; }

 private:
  std::chrono::nanoseconds shortest_ = alone_max;
  unsigned alone_for_ = 0;
};

}  // namespace chorus::engine
