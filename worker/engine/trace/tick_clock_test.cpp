#include "worker/engine/trace/tick_clock.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

using namespace std::chrono_literals;
using chorus::engine::TickClock;
using Clock = std::chrono::steady_clock;

TEST_CASE("the tick clock follows the steady clock before its rate is known, after that, and after a new anchor") {
  TickClock clock;
  auto const until = Clock::now() + 1200ms;
  auto nearest = Clock::duration::max();
  auto farthest_of_thousand = Clock::duration::zero();
  std::uint64_t readings = 0;
  while (Clock::now() < until) {
    // A reading that was preempted says nothing about the clock: of each thousand the nearest one counts.
    auto const before = Clock::now();
    auto const told = clock.now();
    auto const after = Clock::now();
    auto const off = told < before ? before - told : told > after ? told - after : Clock::duration::zero();
    nearest = std::min(nearest, off);
    if (++readings % 1000 != 0) continue;
    farthest_of_thousand = std::max(farthest_of_thousand, nearest);
    nearest = Clock::duration::max();
  }
  CHECK(readings > 1000);
  CAPTURE(farthest_of_thousand.count());
  CHECK(farthest_of_thousand <= 1us);
}

TEST_CASE("a counter that has stepped back, or stands still, has no rate") {
  Clock::time_point const start{1h};
  TickClock::Moment const before{start, 1'000'000, true};
  CHECK(TickClock::ns_per_tick(before, {start + 1s, 3'001'000'000, true}) == 1e9 / 3e9);
  CHECK_FALSE(TickClock::ns_per_tick(before, {start + 1s, 999'999, true}).has_value());
  CHECK_FALSE(TickClock::ns_per_tick(before, {start + 1s, 1'000'000, true}).has_value());
}
