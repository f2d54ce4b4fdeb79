#include "worker/engine/trace/tick_clock.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace chorus::engine {
namespace {

using namespace std::chrono_literals;

// A rate measured over this time is right to some 1e-5, since each moment is known to some 100 ns.
constexpr auto first_anchor_after = 10ms;
constexpr auto anchor_every = 1s;  // at the latest

// Reading the steady clock takes some 50 ticks: if more pass between the two reads of the counter around it, the thread
// was preempted.
constexpr std::uint64_t sharp_ticks = 400;
constexpr int looks_max = 8;

// The kernel uses the counter only if it has a constant rate and is the same on all processors.
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

std::optional<double> TickClock::ns_per_tick(Moment const& before, Moment const& after) {
  if (after.ticks <= before.ticks || after.time <= before.time) return std::nullopt;
  auto const passed = std::chrono::duration<double, std::nano>(after.time - before.time).count();
  return passed / static_cast<double>(after.ticks - before.ticks);
}

TickClock::TimePoint TickClock::anchor() {
  if (!counts_) return std::chrono::steady_clock::now();
  auto const now = look();
  if (now.is_sharp && !anchor_.is_sharp) anchor_ = now;
  if (!now.is_sharp || now.time - anchor_.time < first_anchor_after) return now.time;
  auto const rate = ns_per_tick(anchor_, now);
  if (!rate) {  // the counter has jumped: forget the rate
    anchor_ = now;
    ns_per_tick_ = 0;
    return now.time;
  }
  auto const passed = std::chrono::duration<double, std::nano>(now.time - anchor_.time).count();
  ns_per_tick_ = *rate;
  // A rate is trusted for at most twice the time over which it was measured.
  auto const trusted = std::min(2 * passed, std::chrono::duration<double, std::nano>(anchor_every).count());
  ticks_until_anchor_ = static_cast<std::uint64_t>(trusted / ns_per_tick_);
  anchor_ = now;
  return now.time;
}

}  // namespace chorus::engine
