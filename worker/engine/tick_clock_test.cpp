#include "worker/engine/tick_clock.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

using namespace std::chrono_literals;
using chorus::engine::TickClock;
using Clock = std::chrono::steady_clock;

TEST_CASE("it goes with the steady clock, before its rate is known, after, and when it was anchored anew") {
  TickClock clock;
  auto const until = Clock::now() + 1200ms;
  auto nearest = Clock::duration::max();
  auto farthest_of_thousand = Clock::duration::zero();
  std::uint64_t readings = 0;
  while (Clock::now() < until) {
    // Whoever is kept waiting between two readings says nothing about the clock: of each thousand the nearest counts.
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
