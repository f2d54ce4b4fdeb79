#include "worker/engine/shm/lanes/pulse_watch.hpp"

#include <doctest/doctest.h>

using chorus::engine::PulseWatch;
using namespace std::chrono_literals;

namespace {

PulseWatch::TimePoint at(std::chrono::milliseconds time) { return PulseWatch::TimePoint(1h + time); }

}  // namespace

TEST_CASE("a pulse that stands still for longer than is allowed is noticed, with the time") {
  PulseWatch watch(5000ms);
  for (auto time = 0ms; time < 5000ms; time += 50ms) CHECK_FALSE(watch.look(7, at(time)));
  auto const silent = watch.look(7, at(5002ms));
  REQUIRE(silent);
  CHECK(*silent == 5002ms);
  CHECK_FALSE(watch.look(8, at(5050ms)));
  CHECK_FALSE(watch.look(8, at(5100ms)));
}

TEST_CASE("a pulse that moves within the time allowed is a sign of life, however slowly it moves") {
  PulseWatch watch(5000ms);
  for (auto time = 0ms; time < 60000ms; time += 50ms)
    CHECK_FALSE(watch.look(1 + static_cast<std::uint32_t>(time / 4900ms), at(time)));
}

TEST_CASE("time in which nobody looked does not count against a process") {
  PulseWatch watch(5000ms);
  for (auto time = 0ms; time <= 4500ms; time += 50ms) CHECK_FALSE(watch.look(7, at(time)));
  for (auto time = 20000ms; time < 25000ms; time += 50ms) CHECK_FALSE(watch.look(7, at(time)));
  CHECK(watch.look(7, at(25000ms)));
}

TEST_CASE("a process without a pulse is not said to be silent") {
  PulseWatch watch(5000ms);
  for (auto time = 0ms; time < 60000ms; time += 50ms) CHECK_FALSE(watch.look(0, at(time)));
}
