#include "worker/engine/tick_clock.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace chorus::engine {
namespace {

using namespace std::chrono_literals;

// A rate that was measured over this long is right to some 1e-5: each moment is known to some 100 ns.
constexpr auto first_anchor_after = 10ms;
constexpr auto anchor_every = 1s;  // at the latest

// A look at the steady clock takes some 50 ticks: with more between the two that enclose it, the thread was kept
// waiting.
constexpr std::uint64_t sharp_ticks = 400;
constexpr int looks_max = 8;

// The kernel has checked that counters go on at one rate, and on all processors alike, before it uses them.
bool kernel_counts_ticks() {
#if defined(__x86_64__)
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string name;
  return file >> name && name == "tsc";
#else
  return false;
#endif
}

}  // namespace

TickClock::TickClock() : counts_(kernel_counts_ticks()), anchor_(look()) {}

TickClock::Moment TickClock::look() {
  Moment sharpest;
  auto least = std::numeric_limits<std::uint64_t>::max();
  for (int i = 0; i < looks_max && least > sharp_ticks; ++i) {
    auto const before = read_ticks();
    auto const time = std::chrono::steady_clock::now();
    auto const after = read_ticks();
    if (after - before >= least) continue;
    least = after - before;
    sharpest = {time, before + least / 2, least <= sharp_ticks};
  }
  return sharpest;
}

TickClock::TimePoint TickClock::anchor() {
  if (!counts_) return std::chrono::steady_clock::now();
  auto const now = look();
  if (now.is_sharp && !anchor_.is_sharp) anchor_ = now;
  if (!now.is_sharp || now.time - anchor_.time < first_anchor_after) return now.time;
  auto const passed = std::chrono::duration<double, std::nano>(now.time - anchor_.time).count();
  ns_per_tick_ = passed / static_cast<double>(now.ticks - anchor_.ticks);
  // A rate is not trusted for much longer than it was measured.
  auto const trusted = std::min(2 * passed, std::chrono::duration<double, std::nano>(anchor_every).count());
  ticks_until_anchor_ = static_cast<std::uint64_t>(trusted / ns_per_tick_);
  anchor_ = now;
  return now.time;
}

}  // namespace chorus::engine
