#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "worker/service/cluster/backoff.hpp"

using chorus::service::Backoff;
using namespace std::chrono_literals;

TEST_CASE("pauses grow to the limit, and begin anew after a success") {
  Backoff backoff(100ms, 5000ms, 1);
  for (auto const whole : {100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 5000ms, 5000ms}) {
    auto const pause = backoff.next();
    CHECK(pause >= whole / 2);
    CHECK(pause <= whole);
  }
  backoff.reset();
  CHECK(backoff.next() <= 100ms);
}

TEST_CASE("processes that failed at one instant spread over all of the second half of the pause") {
  std::vector<std::size_t> tenths(10);
  for (std::uint64_t worker = 0; worker < 1000; ++worker) {
    Backoff backoff(2000ms, 2000ms, worker << 32 | 7);  // seeds that are as similar as possible
    auto const beyond_half = backoff.next() - 1000ms;
    ++tenths.at(std::min<std::size_t>(static_cast<std::size_t>(beyond_half / 100ms), 9));
  }
  for (auto const count : tenths) {
    CHECK(count > 50);
    CHECK(count < 200);
  }
}
