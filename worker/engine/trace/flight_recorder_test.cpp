#include "worker/engine/trace/flight_recorder.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "worker/engine/trace/run_identity.hpp"

using namespace chorus;
using namespace chorus::engine;
using std::chrono::nanoseconds;
using TimePoint = std::chrono::steady_clock::time_point;

namespace {

std::shared_ptr<FlightKind const> kind(std::string group, std::uint64_t bytes = 4) {
  FlightKind kind;
  kind.group = std::move(group);
  kind.epoch = 3;
  kind.statistics.bytes_sent = bytes;
  return std::make_shared<FlightKind const>(std::move(kind));
}

Flight flight(std::uint64_t run, nanoseconds started) {
  Flight flight;
  flight.kind = kind("g");
  flight.run = run;
  flight.started = TimePoint(started);
  return flight;
}

RunProgress standing(std::uint64_t run) {
  RunProgress progress;
  progress.run = run;
  return progress;
}

}  // namespace

TEST_CASE("the last 1024 runs are kept, the latest first") {
  FlightRecorder recorder;
  for (std::uint64_t run = 0; run < 1030; ++run) recorder.add(flight(run, nanoseconds(run)));
  auto const last = recorder.last();
  CHECK(last.size() == 1024);
  CHECK(last.front().run == 1029);
  CHECK(last.back().run == 6);
}

TEST_CASE("calls over shared memory are listed among the others, by their start") {
  FlightRecorder recorder;
  auto const lane = recorder.make_lane();
  auto const g = lane->add(kind("g", 8));
  recorder.add(flight(1, nanoseconds(10)));
  lane->note(g, 5, TimePoint(nanoseconds(20)), nanoseconds(340));
  recorder.add(flight(2, nanoseconds(30)));
  auto const last = recorder.last();
  REQUIRE(last.size() == 3);
  CHECK(last[0].run == 2);
  CHECK(last[1].run == local_run_number("g", 3, 5));
  CHECK(last[1].statistics.duration == nanoseconds(340));
  CHECK(last[1].statistics.bytes_sent == 8);
  CHECK(last[1].state == "succeeded");
  CHECK(last[2].run == 1);
}

TEST_CASE("calls of a group that is gone are still listed, and kinds may come without end") {
  FlightRecorder recorder;
  auto lane = recorder.make_lane();
  for (std::uint64_t call = 0; call < 10000; ++call)
    lane->note(lane->add(kind("g" + std::to_string(call))), call, TimePoint(nanoseconds(call)), nanoseconds(1));
  lane.reset();
  auto const last = recorder.last();
  CHECK(last.size() == 1024);
  CHECK(last.front().kind->group == "g9999");
  CHECK(last.back().kind->group == "g8976");
}

TEST_CASE("a reader never sees half of one call and half of another") {
  FlightRecorder recorder;
  auto const lane = recorder.make_lane();
  auto const g = lane->add(kind("g"));
  std::atomic<bool> ends = false;
  // Call n began at n and took n nanoseconds.
  std::thread caller([&] {
    for (std::uint64_t n = 1; !ends; ++n) lane->note(g, n, TimePoint(nanoseconds(n)), nanoseconds(n % 1000000));
  });
  for (int look = 0; look < 200; ++look)
    for (auto const& one : recorder.last()) {
      auto const n = one.started.time_since_epoch().count();
      if (one.run != local_run_number("g", 3, static_cast<std::uint64_t>(n))) FAIL_CHECK("run of another call");
      if (one.statistics.duration != nanoseconds(n % 1000000)) FAIL_CHECK("duration of another call");
    }
  ends = true;
  caller.join();
}

TEST_CASE("a run that stands still is told once, and that it goes on") {
  std::vector<std::pair<std::uint64_t, bool>> told;
  FlightRecorder recorder({.stall = {}, .on_stall = [&told](RunProgress const& run, bool stalled) {
                             told.emplace_back(run.run, stalled);
                           }});
  recorder.stalled(standing(7));
  CHECK(recorder.stalls().size() == 1);
  recorder.goes_on(7);
  recorder.goes_on(7);
  CHECK(recorder.stalls().empty());
  CHECK(told == std::vector<std::pair<std::uint64_t, bool>>{{7, true}, {7, false}});
}
