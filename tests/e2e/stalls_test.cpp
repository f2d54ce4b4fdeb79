// A worker that is stopped with a signal in the middle of a collective: the record, the log, the events, the metric and
// the doctor name it, during the collective and after it has failed.
#include <doctest/doctest.h>
#include <signal.h>

#include <cmath>
#include <future>

#include "tests/support/fleets/cluster.hpp"
#include "tests/support/mentions.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus::testing;
using chorus::testing::mentions;
namespace json = boost::json;

namespace {

constexpr auto traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

// The command line with standard error in a file.
std::vector<std::string> logging_to(std::string const& file, std::vector<std::string> arguments) {
  std::vector<std::string> all{"/bin/sh", "-c", "exec \"$@\" 2>'" + file + "'", "sh"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

struct Said {
  int status = 0;
  std::string text;
};

Said chorus_says(Service const& coordinator, std::vector<std::string> arguments) {
  std::vector<std::string> all{binary("chorus"), "--coordinator", coordinator.url};
  all.insert(all.end(), arguments.begin(), arguments.end());
  Process process(all);
  auto text = process.read_all();
  return {process.wait(), std::move(text)};
}

// Small segments make the tensor take long enough for a stop in the middle. It is no larger, because the other ranks go
// on for a while, a second on a busy machine, until all of them wait for the stopped one.
std::string a_tensor() { return std::string(std::size_t{64} << 20, '\1'); }

// Four workers, of which the test stops w2. 5 s later w2 is lost, and the run is over. The coordinator checks twice a
// second and waits half a second for answers, and must report before, also on a busy machine.
struct Fleet {
  explicit Fleet(std::string const& stall_ms)
      : coordinator("coordinator",
                    logging_to(directory / "coordinator", {binary("chorus-coordinator"), "--port", "0", "--lease-ms",
                                                           "60000", "--stall-ms", stall_ms, "--log-format", "json"})) {
    for (int i = 0; i < 4; ++i) {
      auto const id = "w" + std::to_string(i);
      workers.push_back(std::make_unique<Service>(
          id,
          logging_to(directory / id, {binary("chorus-worker"), "--port", "0", "--coordinator", coordinator.url, "--id",
                                      id, "--locality", "host=h", "--stall-ms", "500", "--log-format", "json"})));
    }
    REQUIRE(eventually(
        [&] { return coordinator.put("/v1/groups/g", R"({"workers":["w0","w1","w2","w3"]})").status / 100 == 2; }));
  }
  Service& worker(std::string const& id) {
    for (auto& one : workers)
      if (one->id == id) return *one;
    throw std::runtime_error("no worker " + id);
  }
  json::object record(std::string const& id) { return coordinator.get("/v1/collectives/" + id).json().as_object(); }
  std::string log(std::string const& service) { return content_of(directory / service); }
  std::uint32_t rank_of(std::string const& id) {
    auto const group = coordinator.get("/v1/groups/g").json();
    for (auto const& member : group.at("members").as_array())
      if (std::string_view(member.at("worker").as_string()) == id) return member.at("rank").to_number<std::uint32_t>();
    throw std::runtime_error("no member " + id);
  }

  ScratchDirectory directory;
  Service coordinator;
  std::vector<std::unique_ptr<Service>> workers;
};

}  // namespace

TEST_CASE("a worker that is stopped during a collective is named by record, log, events, metric and doctor") {
  Fleet fleet("1000");
  auto const bytes = a_tensor();
  for (auto& worker : fleet.workers)
    REQUIRE(worker->put_tensor("x", "u8", std::to_string(bytes.size()), bytes).status / 100 == 2);
  CHECK(chorus_says(fleet.coordinator, {"doctor"}).status == 0);

  auto const body =
      R"({"group":"g","tensor":"x","algorithm":"ring","timeout_ms":60000,"schedule":{"segment_bytes":4096,"window":1}})";
  auto const launched =
      fleet.coordinator.post("/v1/collectives", body, {{"Idempotency-Key", "k"}, {"traceparent", traceparent}});
  REQUIRE(launched.status == 202);
  auto const id = std::string(launched.json().at("id").as_string());
  auto const run = launched.json().at("run").to_number<std::uint64_t>();
  REQUIRE(eventually([&] { return fleet.record(id).at("state") == "running"; }));
  auto& victim = fleet.worker("w2");
  auto const rank = fleet.rank_of("w2");
  REQUIRE(eventually([&] {
    auto const progress = victim.get("/v1/runs/" + std::to_string(run) + "/progress");
    return progress.status == 200 && progress.json().at("state") == "running";
  }));
  victim.process.signal(SIGSTOP);

  // The record.
  json::object record;
  bool const named = eventually([&] {
    record = fleet.record(id);
    return record.contains("stalled") && record.at("stalled").at("waiting_for") == json::array{rank};
  });
  auto const shown = json::serialize(record);
  INFO(shown);
  REQUIRE(named);
  // The doctor reads the record first, and then waits for w2 in vain, for longer than the run lasts.
  auto asked = std::async(std::launch::async,
                          [&coordinator = fleet.coordinator] { return chorus_says(coordinator, {"doctor"}); });
  auto const top = json::parse(chorus_says(fleet.coordinator, {"top", "--count", "1"}).text);
  auto const stalled_now = fleet.coordinator.metric(R"(chorus_collectives_stalled{op="all_reduce"})");
  CHECK(record.at("state") == "running");
  CHECK(record.at("traceparent") == traceparent);
  auto const& stalled = record.at("stalled").as_object();
  CHECK(stalled.at("ranks").as_array().size() == 4);
  CHECK(stalled.at("ranks").at(rank).at("worker") == "w2");
  CHECK(stalled.at("ranks").at(rank).at("state") == "silent");
  auto const& neighbour = stalled.at("ranks").at((rank + 1) % 4).as_object();
  CHECK(neighbour.at("state") == "running");
  CHECK(mentions(std::string(neighbour.at("instruction").as_string()), "from rank " + std::to_string(rank)));
  CHECK(neighbour.at("peer") == rank);
  CHECK(neighbour.at("for_s").to_number<double>() >= 0.5);

  // The metric, the live view, the log, the event, the doctor.
  CHECK(top.at("stalled") == 1);
  CHECK(stalled_now == 1);
  auto const log = fleet.log("coordinator");
  auto const at = log.find(R"("event":"collective.stalled")");
  REQUIRE(at != std::string::npos);
  auto const begin = log.rfind('\n', at) + 1;
  auto const line = json::parse(log.substr(begin, log.find('\n', at) - begin));
  CHECK(line.at("run") == run);
  CHECK(line.at("group") == "g");
  CHECK(line.at("epoch") == record.at("epoch"));
  CHECK(line.at("trace_id") == "4bf92f3577b34da6a3ce929d0e0e4736");
  CHECK(mentions(std::string(line.at("message").as_string()), "w2"));
  auto const events = chorus_says(fleet.coordinator, {"events", "--no-follow", "--json"}).text;
  CHECK(mentions(events, "\"collective.stalled\""));
  auto const doctor = asked.get();
  INFO(doctor.text);
  CHECK(doctor.status == 1);
  CHECK(mentions(doctor.text, "waiting for rank " + std::to_string(rank) + " ('w2'), which does not answer"));
  CHECK(mentions(doctor.text, "worker w2: nobody answers at its address"));

  // The end: silence becomes loss, and the record keeps the report.
  auto const ended = fleet.coordinator.get("/v1/collectives/" + id + "?wait=30s").json();
  CHECK(ended.at("state") == "failed");
  CHECK(ended.at("error").at("ranks") == json::array{rank});
  CHECK(ended.at("error").at("trace_id") == "4bf92f3577b34da6a3ce929d0e0e4736");
  CHECK(ended.at("stalled").at("waiting_for") == json::array{rank});
  CHECK(eventually([&] { return fleet.coordinator.metric(R"(chorus_collectives_stalled{op="all_reduce"})") == 0; }));
  victim.process.signal(SIGCONT);
  std::string logs;
  for (auto const* worker : {"w0", "w1", "w3"}) logs += fleet.log(worker);
  CHECK(mentions(logs, R"("event":"run.stalled")"));
  // The trace of the launch was passed on: the workers' logs and flight recorders have it, too.
  auto const failed_at = logs.find(R"("event":"run.ended")");
  REQUIRE(failed_at != std::string::npos);
  auto const of_run = json::parse(
      logs.substr(logs.rfind('\n', failed_at) + 1, logs.find('\n', failed_at) - logs.rfind('\n', failed_at) - 1));
  CHECK(of_run.at("run") == run);
  CHECK(of_run.at("group") == "g");
  CHECK(of_run.at("epoch") == record.at("epoch"));
  CHECK(of_run.at("trace_id") == "4bf92f3577b34da6a3ce929d0e0e4736");
  auto const flight = fleet.worker("w0").get("/v1/flight?run=" + std::to_string(run)).json().at("items").at(0);
  CHECK(mentions(json::serialize(flight), "4bf92f3577b34da6a3ce929d0e0e4736"));
}

TEST_CASE("a stopped worker that goes on lets the collective succeed, and only events remember the stall") {
  Fleet fleet("500");
  auto const bytes = a_tensor();
  for (auto& worker : fleet.workers)
    REQUIRE(worker->put_tensor("x", "u8", std::to_string(bytes.size()), bytes).status / 100 == 2);
  auto const launched = fleet.coordinator.put(
      "/v1/collectives/c",
      R"({"group":"g","tensor":"x","algorithm":"ring","timeout_ms":60000,"schedule":{"segment_bytes":4096,"window":1}})");
  REQUIRE(launched.status == 202);
  auto& victim = fleet.worker("w2");
  auto const run = std::to_string(launched.json().at("run").to_number<std::uint64_t>());
  REQUIRE(eventually([&] { return victim.get("/v1/runs/" + run + "/progress").status == 200; }));
  victim.process.signal(SIGSTOP);
  bool const is_stalled = eventually([&] { return fleet.record("c").contains("stalled"); });
  auto const record = json::serialize(fleet.record("c"));
  INFO(record);
  REQUIRE(is_stalled);
  victim.process.signal(SIGCONT);
  auto const ended = fleet.coordinator.get("/v1/collectives/c?wait=50s").json();
  CHECK(ended.at("state") == "succeeded");
  CHECK_FALSE(ended.as_object().contains("stalled"));

  // The work of every rank on one clock, which the processes of one machine share.
  auto const answer = chorus_says(fleet.coordinator, {"trace", "c"});
  CHECK(answer.status == 0);
  auto const trace = json::parse(answer.text);
  std::size_t runs = 0, instructions = 0;
  for (auto const& event : trace.at("traceEvents").as_array()) {
    auto const* const category = event.as_object().if_contains("cat");
    if (category == nullptr) continue;
    if (*category == "run") ++runs;
    if (*category == "instruction") ++instructions;
    CHECK(event.at("ts").to_number<double>() >= 0);
  }
  CHECK(runs == 4);
  CHECK(instructions >= 4 * 12);
  for (auto const& about : trace.at("metadata").at("ranks").as_array()) {
    auto const offset = about.at("clock_offset_us").to_number<double>();
    CHECK(std::abs(offset) <= about.at("clock_error_us").to_number<double>());
  }
  CHECK(fleet.coordinator.get("/v1/collectives/unknown/trace").code() == "unknown_collective");
}
