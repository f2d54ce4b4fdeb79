// What a worker reports about its past and current runs.
#include <doctest/doctest.h>

#include <thread>

#include "http/json/json.hpp"
#include "tests/support/mentions.hpp"
#include "worker/service/testing/live_group.hpp"

using namespace chorus;
using namespace chorus::service;
using namespace chorus::service::testing;
using chorus::testing::mentions;
namespace json = boost::json;

namespace {

constexpr auto traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

// A group in which runs soon count as stalled.
std::unique_ptr<LiveGroup> impatient_group(std::size_t ranks, bool shares_memory = true) {
  auto group = std::make_unique<LiveGroup>(ranks, [shares_memory](WorkerOptions& options) {
    options.stall = std::chrono::milliseconds(100);
    options.shares_memory = shares_memory;
  });
  group->put_everywhere("x");
  return group;
}

json::value flight_of(LiveWorker& worker, std::string const& query) { return worker.get("/v1/flight" + query).json(); }

}  // namespace

TEST_CASE("a run is listed with its instructions, in the order of the program, and each when it was done") {
  auto const group = impatient_group(3);
  group->run(7);
  auto const list = flight_of(group->at(1), "?run=7");
  REQUIRE(list.at("items").as_array().size() == 1);
  auto const& flight = list.at("items").at(0);
  CHECK(flight.at("run") == "0000000000000007");
  CHECK(flight.at("group") == "g");
  CHECK(flight.at("rank") == 1);
  CHECK(flight.at("state") == "succeeded");
  CHECK(flight.at("path") == "links");
  CHECK(list.at("worker") == "w1");
  CHECK(list.at("now_us").to_number<double>() > flight.at("started_us").to_number<double>());
  auto const& instructions = flight.at("instructions").as_array();
  CHECK(instructions.size() == flight.at("steps").to_number<std::size_t>());
  for (auto const& instruction : instructions) {
    CHECK(instruction.at("ready_us").to_number<double>() <= instruction.at("moved_us").to_number<double>());
    CHECK(instruction.at("moved_us").to_number<double>() <= instruction.at("done_us").to_number<double>());
    CHECK(instruction.at("done_us").to_number<double>() <= flight.at("seconds").to_number<double>() * 1e6);
    CHECK(instruction.at("bytes").to_number<int>() > 0);
  }
}

TEST_CASE("flights come in pages, the latest first, without their instructions unless asked for") {
  auto const group = impatient_group(1);
  for (std::uint64_t run : {7, 8, 9}) group->run(run);
  auto const first = flight_of(group->at(0), "?limit=2");
  REQUIRE(first.at("items").as_array().size() == 2);
  CHECK(first.at("items").at(0).at("run") == "0000000000000009");
  CHECK_FALSE(first.at("items").at(0).as_object().contains("instructions"));
  auto const next = flight_of(group->at(0), "?limit=2&cursor=" + std::string(first.at("next_cursor").as_string()));
  REQUIRE(next.at("items").as_array().size() == 1);
  CHECK(next.at("items").at(0).at("run") == "0000000000000007");
  CHECK_FALSE(next.as_object().contains("next_cursor"));
  CHECK(flight_of(group->at(0), "?instructions=true").at("items").at(0).as_object().contains("instructions"));
  CHECK(flight_of(group->at(0), "?run=0x0000000000000008").at("items").as_array().size() == 1);
  CHECK(flight_of(group->at(0), "?run=10").at("items").as_array().empty());
  for (auto const* query :
       {"?limit=0", "?limit=9999", "?cursor=x", "?cursor=1.2", "?run=x", "?run=", "?instructions=1"})
    CHECK_MESSAGE(group->at(0).get(std::string("/v1/flight") + query).code() == "bad_request", query);
}

// Regression: the coordinator draws numbers, and one of 16 digits was read as hexadecimal.
TEST_CASE("a run whose number has 16 digits is found by it") {
  auto const group = impatient_group(1);
  group->run(1234567890123456);
  CHECK(flight_of(group->at(0), "?run=1234567890123456").at("items").as_array().size() == 1);
  CHECK(group->at(0).get("/v1/runs/1234567890123456/progress").json().at("state") == "held");
}

TEST_CASE("the trace of a launch and of a call is kept with the flight, and shown with a problem") {
  auto const group = impatient_group(1);
  group->assign(1);
  auto const launched =
      group->at(0).put("/v1/runs/7", http::encode(group->request(0, 7)), {{"traceparent", traceparent}});
  CHECK(launched.status == 200);
  CHECK(flight_of(group->at(0), "?run=7").at("items").at(0).at("trace_id") == "4bf92f3577b34da6a3ce929d0e0e4736");
  group->run(8);
  CHECK_FALSE(flight_of(group->at(0), "?run=8").at("items").at(0).as_object().contains("trace_id"));
  auto const refused = group->at(0).put("/v1/runs/x", "{}", {{"traceparent", traceparent}});
  CHECK(refused.json().at("trace_id") == "4bf92f3577b34da6a3ce929d0e0e4736");
  CHECK_FALSE(
      group->at(0).put("/v1/runs/x", "{}", {{"traceparent", "00-nonsense"}}).json().as_object().contains("trace_id"));
}

TEST_CASE("a run that stands still tells where and for which rank, in its progress and in the log, until it goes on") {
  for (bool const shares_memory : {true, false}) {
    auto const group = impatient_group(2, shares_memory);
    Answer report;
    std::thread launch([&] { report = group->launch(0, group->request(0, 7)); });
    auto const log_says = [&group](std::string const& part) { return mentions(group->at(0).logged(), part); };
    while (!log_says("stands still")) std::this_thread::yield();
    CHECK(log_says("rank 1 (w1)"));
    CHECK(log_says("run=7 group=g epoch=1"));
    auto const progress = group->at(0).get("/v1/runs/7/progress").json();
    CHECK(progress.at("state") == "running");
    CHECK(progress.at("still_seconds").to_number<double>() >= 0.1);
    CHECK(progress.at("steps_done").to_number<int>() < progress.at("steps").to_number<int>());
    CHECK(progress.at("waiting_for").at(0).at("rank") == 1);
    CHECK(progress.at("waiting_for").at(0).at("worker") == "w1");
    CHECK(progress.at("waiting_for").at(0).at("suspicion") == "not_called");
    CHECK(progress.at("instructions").as_array().size() >= 1);
    CHECK(group->at(0).get("/v1/progress").json().at("items").as_array().size() == 1);
    CHECK(group->at(1).get("/v1/runs/7/progress").code() == "unknown_run");
    CHECK(group->launch(1, group->request(1, 7)).status == 200);
    launch.join();
    CHECK(log_says("goes on, or has ended"));
    CHECK(group->at(0).get("/v1/runs/7/progress").json().at("state") == "held");
    CHECK(group->at(0).get("/v1/progress").json().at("items").as_array().empty());
  }
}

TEST_CASE("a worker's clock can be read") {
  LiveWorker worker;
  auto const first = worker.get("/v1/clock").json(), second = worker.get("/v1/clock").json();
  CHECK(first.at("worker") == "w0");
  CHECK(second.at("now_us").to_number<double>() > first.at("now_us").to_number<double>());
}
