// The steady clock at the price of the processor's time stamp counter, for calls that take a few hundred nanoseconds.
#pragma once

#include <chrono>
#include <cstdint>

namespace chorus::engine {

// One thread at a time. Where the kernel itself keeps time by the counter, points of time are counted from an anchor
// that is set anew every second, so that they stay within a microsecond of the steady clock; elsewhere they are the
// steady clock's. Two of them may be out of order by as much.
class TickClock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  TickClock();
  [[nodiscard]] TimePoint now() {
    if (ns_per_tick_ == 0) return anchor();
    auto const ticks = read_ticks() - anchor_.ticks;
    if (ticks > ticks_until_anchor_) return anchor();
    return anchor_.time +
           std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(ticks) * ns_per_tick_));
  }

 private:
  [[nodiscard]] static std::uint64_t read_ticks() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
  }
  // Both clocks at one moment: not if the thread was kept waiting between them.
  struct Moment {
    TimePoint time;
    std::uint64_t ticks = 0;
    bool is_sharp = false;
  };
  [[nodiscard]] static Moment look();
  TimePoint anchor();

  bool const counts_;
  Moment anchor_;
  double ns_per_tick_ = 0;  // 0: not known
  std::uint64_t ticks_until_anchor_ = 0;
};

}  // namespace chorus::engine
