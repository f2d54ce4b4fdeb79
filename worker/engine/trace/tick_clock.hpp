// The steady clock at the price of the processor's time stamp counter, for calls that take a few hundred nanoseconds.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace chorus::engine {

// One thread at a time. Where the kernel itself keeps time by the counter, time points are counted from an anchor that
// is renewed every second, so they stay within a microsecond of the steady clock; elsewhere the steady clock is read.
// Two time points may be out of order by as much.
class TickClock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Both clocks read at the same moment; not sharp if the thread was preempted between the reads.
  struct Moment {
    TimePoint time;
    std::uint64_t ticks = 0;
    bool is_sharp = false;
  };
  // Rate of the counter between two moments; empty if the counter has not advanced, as when a machine was suspended or
  // moved.
  [[nodiscard]] static std::optional<double> ns_per_tick(Moment const& before, Moment const& after);

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
  [[nodiscard]] static Moment look();
  TimePoint anchor();

  bool const counts_;
  Moment anchor_;
  double ns_per_tick_ = 0;  // 0: not measured yet
  std::uint64_t ticks_until_anchor_ = 0;
};

}  // namespace chorus::engine
