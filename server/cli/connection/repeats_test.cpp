// When a request whose answer was lost is sent again.
#include <doctest/doctest.h>

#include "server/cli/connection/repeats.hpp"

using namespace chorus::cli;
using std::chrono::milliseconds;

TEST_CASE("a request that never reached the service, or has its answer, is not repeated") {
  auto const now = Repeats::Clock::now();
  for (auto const delivery : {Delivery::none, Delivery::silent, Delivery::answered})
    CHECK_FALSE(Repeats().pause_after(delivery, now).has_value());
}

TEST_CASE("a lost answer is asked for three times more") {
  Repeats repeats;
  auto const now = Repeats::Clock::now();
  CHECK(repeats.pause_after(Delivery::lost, now) == milliseconds(100));
  CHECK(repeats.pause_after(Delivery::lost, now) == milliseconds(200));
  CHECK(repeats.pause_after(Delivery::lost, now) == milliseconds(400));
  CHECK_FALSE(repeats.pause_after(Delivery::lost, now).has_value());
}

TEST_CASE("after a lost answer refused connections are those of a service that starts again, for some seconds") {
  Repeats repeats;
  auto const began = Repeats::Clock::now();
  auto now = began;
  auto pause = repeats.pause_after(Delivery::lost, now);
  int refused = 0;
  for (; pause; ++refused) {
    CHECK(*pause <= milliseconds(1000));
    now += *pause;
    pause = repeats.pause_after(Delivery::none, now);
  }
  CHECK(refused > Repeats::most_after_losses);
  CHECK(now - began >= Repeats::restart_patience);
  CHECK(now - began < Repeats::restart_patience + std::chrono::seconds(1));
}
