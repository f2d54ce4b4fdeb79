#include "worker/engine/loop/adaptive_yield.hpp"

#include <doctest/doctest.h>

using chorus::engine::AdaptiveYield;
using namespace std::chrono_literals;

TEST_CASE("a thread whose yield returns at once is alone") {
  AdaptiveYield adaptive_yield;
  adaptive_yield.took(300ns);
  CHECK(adaptive_yield.is_alone());
  adaptive_yield.took(500ns);
  CHECK(adaptive_yield.is_alone());
}

TEST_CASE("a thread whose yield returns late has company, by the clock and by what is usual here") {
  AdaptiveYield adaptive_yield;
  adaptive_yield.took(5us);
  CHECK_FALSE(adaptive_yield.is_alone());
  adaptive_yield.took(300ns);
  CHECK(adaptive_yield.is_alone());
  adaptive_yield.took(700ns);
  CHECK_FALSE(adaptive_yield.is_alone());
}

TEST_CASE("a thread that is alone looks a few times before the next yield") {
  AdaptiveYield adaptive_yield;
  adaptive_yield.took(300ns);
  auto const now = AdaptiveYield::TimePoint::max();  // any yield would appear to have returned long before it began
  for (unsigned look = 0; look < AdaptiveYield::looks_alone; ++look) {
    CHECK(adaptive_yield.is_alone());
    adaptive_yield.give_way(now);
  }
  CHECK_FALSE(adaptive_yield.is_alone());
}
