#include "server/coordinator/observability/trace.hpp"

#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <cmath>
#include <map>

using namespace chorus;
using namespace chorus::coordinator;
namespace json = boost::json;

namespace {

api::FlightInstruction instruction(std::uint32_t number, std::string op, std::uint32_t peer, double ready, double moved,
                                   double done) {
  api::FlightInstruction one;
  one.instruction = number;
  one.op = std::move(op);
  one.peer = peer;
  one.message = 0;
  one.bytes = 64;
  one.ready_us = ready;
  one.moved_us = moved;
  one.done_us = done;
  return one;
}

RankTrace rank(std::uint32_t number, double started_us, std::vector<api::FlightInstruction> instructions) {
  RankTrace trace;
  trace.rank = number;
  trace.worker = "w" + std::to_string(number);
  auto& flight = trace.flight.emplace();
  flight.op = "all_reduce";
  flight.algorithm = "ring";
  flight.state = "succeeded";
  flight.started_us = started_us;
  flight.seconds = 100e-6;
  flight.instructions = std::move(instructions);
  return trace;
}

std::vector<json::object> events_of(json::value const& trace, char const* phase) {
  std::vector<json::object> events;
  for (auto const& event : trace.at("traceEvents").as_array())
    if (event.at("ph") == phase) events.push_back(event.as_object());
  return events;
}

}  // namespace

TEST_CASE("the error of a clock is at most half of the exchange, whenever the other clock was read") {
  constexpr double true_offset = 12345;
  for (double const read_after : {0.0, 3.0, 10.0}) {
    auto const offset = offset_of(100, 110, 100 + read_after - true_offset);
    CHECK(offset.error_us == 5);
    CHECK(std::abs(offset.offset_us - true_offset) <= offset.error_us);
  }
}

TEST_CASE("ranks with different clocks are drawn on one, from the first that began") {
  auto a = rank(0, 1000, {instruction(0, "send", 1, 0, 0, 10)});
  auto b = rank(1, 900000, {instruction(0, "recv", 0, 0, 20, 30)});
  b.clock = {-899000 + 5, 2};
  auto const trace = json::parse(chrome_trace({.id = "c", .state = "succeeded"}, {a, b}));
  auto const runs = events_of(trace, "X");
  CHECK(trace.at("metadata").at("clock_error_us").to_number<double>() == 2);
  CHECK(runs.front().at("ts").to_number<double>() == 0);
  auto const starts = events_of(trace, "s"), ends = events_of(trace, "f");
  REQUIRE(starts.size() == 1);
  REQUIRE(ends.size() == 1);
  CHECK(starts[0].at("id") == ends[0].at("id"));
  CHECK(starts[0].at("ts").to_number<double>() == 10);
  CHECK(ends[0].at("ts").to_number<double>() == 35);
  CHECK(ends[0].at("pid") == 1);
}

TEST_CASE("instructions in one row do not overlap, except for the wait within an instruction") {
  auto const trace = json::parse(
      chrome_trace({.id = "c"}, {rank(0, 0,
                                      {instruction(0, "recv", 1, 0, 5, 50), instruction(1, "recv", 2, 10, 20, 60),
                                       instruction(2, "recv", 1, 55, 60, 70), instruction(3, "send", 1, 0, 1, 2)})}));
  std::map<std::int64_t, double> busy_until;
  for (auto const& event : events_of(trace, "X")) {
    if (event.at("cat") == "wait") continue;
    auto const row = event.at("tid").as_int64();
    auto const begin = event.at("ts").to_number<double>();
    CHECK(begin >= busy_until[row]);
    busy_until[row] = begin + event.at("dur").to_number<double>();
  }
  CHECK(busy_until.size() == 4);  // the run, two rows of receives, one of sends
}

TEST_CASE(
    "a rank without a record is in the trace with the reason, and unfinished instructions last to the end of the run") {
  RankTrace gone;
  gone.rank = 1;
  gone.worker = "w1";
  gone.why = "connection refused";
  auto stuck = instruction(0, "recv", 1, 10, 0, 0);
  stuck.moved_us.reset();
  stuck.done_us.reset();
  auto const trace = json::parse(chrome_trace({.id = "c"}, {rank(0, 0, {stuck}), gone}));
  CHECK(trace.at("metadata").at("ranks").at(1).at("why_not") == "connection refused");
  auto const events = events_of(trace, "X");
  REQUIRE(events.size() == 3);
  CHECK(events[1].at("dur").to_number<double>() == doctest::Approx(90));
  CHECK(events[1].at("args").at("done") == false);
  CHECK(events[2].at("name") == "wait");
}

TEST_CASE("the work of a GPU has one row for each of its queues") {
  auto one = rank(0, 1000, {instruction(0, "recv_reduce", 1, 0, 10, 60)});
  one.flight->gpu = {{"in", 10, 20, 4096}, {"compute", 20, 25, 4096}, {"in", 20, 30, 4096}, {"out", 25, 40, 4096}};
  std::map<std::int64_t, std::vector<std::string>> rows;
  for (auto const& span : events_of(json::parse(chrome_trace({.id = "c"}, {one})), "X"))
    if (span.at("cat") == "gpu") rows[span.at("tid").as_int64()].emplace_back(span.at("name").as_string());
  CHECK(rows == decltype(rows){{500, {"to the GPU", "to the GPU"}}, {600, {"kernel"}}, {700, {"from the GPU"}}});
}
