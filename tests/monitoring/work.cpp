#include "tests/monitoring/work.hpp"

#include <signal.h>

#include <filesystem>
#include <future>
#include <limits>
#include <stdexcept>

#include "tests/monitoring/expect.hpp"

namespace chorus::testing {
namespace {

namespace json = boost::json;

constexpr std::size_t large = 1 << 20;  // elements

std::vector<std::string> flags_of(ScratchDirectory const& directory) {
  return {"--journal", directory / "journal",     "--lease-ms", "4000", "--checkpoint",
          "auto",      "--checkpoint-interval-s", "5"};
}

// It had work, and no time to say goodbye.
Cluster cluster_after_a_crash(std::vector<std::string> const& flags) {
  Cluster killed(0, {}, flags);
  killed.add_worker("w0", "host=h0");
  killed.make_group("g");  // durable when it is answered
  killed.coordinator.process.signal(SIGKILL);
  killed.coordinator.process.wait();
  return Cluster(0, {}, flags);
}

}  // namespace

Work::Work() : cluster_(cluster_after_a_crash(flags_of(directory_))) {
  for (auto const* const name : {"checkpoints", "logs"}) std::filesystem::create_directory(directory_ / name);
  for (std::size_t i = 0; i < workers; ++i) {
    auto const zone = std::string("zone=") + (i < 2 ? "a" : "b") + ",host=h" + std::to_string(i);
    auto const log_directory = directory_ / "logs" + "/w" + std::to_string(i);
    std::filesystem::create_directory(log_directory);
    std::vector<std::string> flags{"--checkpoint-directory", directory_ / "checkpoints", "--log-directory",
                                   log_directory};
    if (i == 1) flags.insert(flags.end(), {"--shm", "off"});
    cluster_.add_worker("w" + std::to_string(i), zone, flags);
  }
  cluster_.make_group("g");
  auto const made = coordinator().put(
      "/v1/parameters/p", R"({"group":"g","shape":[1000],"optimizer":{"name":"sgd"},"nonfinite":"zero","staleness":1,)"
                          R"("clients":["fast","slow"]})");
  expect(made.status == 201, "PUT parameter: " + made.body);
  auto const rows = coordinator().put("/v1/parameters/rows",
                                      R"({"group":"g","shape":[1000000,4],"lazy_rows":1000,"durability":"log"})");
  expect(rows.status == 201, "PUT parameter with rows: " + rows.body);
  fast_ = std::make_unique<ParameterClient>(worker(0).url, "fast");
  slow_ = std::make_unique<ParameterClient>(worker(0).url, "slow");
  for (std::size_t i = 0; i < workers; ++i) {
    worker(i).put_tensor("small", "f32", std::vector<float>(256, 1));
    worker(i).put_tensor("large", "f32", std::vector<float>(large, 1));
    worker(i).put_tensor("half", "bf16", std::vector<std::uint16_t>(large, 0));
  }
}

std::vector<std::string> Work::worker_urls() {
  std::vector<std::string> urls;
  for (std::size_t i = 0; i < workers; ++i) urls.push_back(worker(i).url);
  return urls;
}

void Work::collectives() {
  for (auto const* op : {"all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "barrier"})
    for (auto const* tensor : {"small", "large", "half"}) {
      json::object request{{"group", "g"}, {"op", op}, {"tensor", tensor}, {"output", std::string(tensor) + "_out"}};
      if (std::string_view(op) == "broadcast") request.erase("output");
      if (std::string_view(op) == "barrier") request = {{"group", "g"}, {"op", op}};
      auto const ended = cluster_.run(request);
      expect(ended.as_object().contains("state") && ended.at("state") == "succeeded", json::serialize(ended));
    }
  auto const named = cluster_.run({{"group", "g"}, {"op", "all_reduce"}, {"tensor", "large"}, {"algorithm", "ring"}});
  expect(named.at("state") == "succeeded", json::serialize(named));
  auto const compressed = cluster_.run(
      {{"group", "g"}, {"op", "all_reduce"}, {"tensor", "large"}, {"output", "large_out"}, {"compression", "int8"}});
  expect(compressed.at("state") == "succeeded", json::serialize(compressed));
}

void Work::local_calls() {
  std::vector<std::future<Answer>> calls;
  for (std::size_t i = 0; i < workers; ++i)
    calls.push_back(std::async(std::launch::async, [this, i] {
      return worker(i).post("/v1/groups/g/all_reduce", R"({"tensor":"large","output":"local"})");
    }));
  for (auto& call : calls) {
    auto const answer = call.get();
    expect(answer.status == 200, answer.body);
  }
}

void Work::parameters() {
  std::vector<float> gradient(1000, 0.5F);
  expect(fast_->push("p", ParameterClient::bytes(gradient), clock_).status == 200, "push");
  gradient[7] = std::numeric_limits<float>::infinity();
  // A reader that is ahead of the slow client waits for it.
  auto waiting = std::async(std::launch::async, [this] {
    return fast_->pull("p", {{"Chorus-Clock", std::to_string(clock_ + 2)}});
  });
  pause_briefly();
  expect(slow_->push("p", ParameterClient::bytes(gradient), clock_).status == 200, "push of the slow one");
  auto const read = waiting.get();
  expect(read.status == 200, read.body);
  auto const again = fast_->pull("p", {{"If-None-Match", read.header("ETag")}});
  expect(again.status == 304, "a pull of what has not changed: " + std::to_string(again.status));
  std::string numbers_and_rows = ParameterClient::bytes(std::vector<std::uint64_t>{clock_, clock_ + 1000});
  numbers_and_rows += ParameterClient::bytes(std::vector<float>(8, 1));
  auto const created = fast_->push("rows", numbers_and_rows, {}, "rows/gradient", {{"Chorus-Rows", "2"}});
  expect(created.status == 200, "a push of rows: " + created.body);
  ++clock_;
}

// A name that is not the service's: as a page does whose owner has made his name point here.
void Work::intrude() {
  httplib::Client stranger(coordinator().url);
  stranger.set_default_headers({{"Host", "evil.example"}});
  auto const answer = stranger.Get("/v1/groups");
  expect(answer && answer->status == 421, "a request by a strange name");
}

void Work::round() {
  collectives();
  intrude();
  local_calls();
  parameters();
}

// A barrier has no tensor to be looked at first: all ranks are told at once.
void Work::straggle() {
  auto const& last = worker(workers - 1).process;
  last.signal(SIGSTOP);
  auto waiting = std::async(std::launch::async, [this] { return cluster_.run({{"group", "g"}, {"op", "barrier"}}); });
  bool const began = eventually([this] {
    return coordinator().metric(R"(chorus_collectives_active{op="barrier"})") == 1 &&
           worker(0).metric(R"(chorus_collectives_active{op="barrier"})") == 1;
  });
  auto const late_enough = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  while (std::chrono::steady_clock::now() < late_enough) pause_briefly();
  last.signal(SIGCONT);
  auto const ended = waiting.get();
  expect(began && ended.at("state") == "succeeded", json::serialize(ended));
}

void Work::stop_one() {
  worker(workers - 1).process.signal(SIGSTOP);
  auto const ended = cluster_.run({{"group", "g"}, {"op", "barrier"}, {"timeout_ms", 2000}});
  expect(ended.at("state") == "failed", json::serialize(ended));
}

}  // namespace chorus::testing
