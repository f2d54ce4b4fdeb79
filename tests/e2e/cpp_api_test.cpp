// Programs on the C++ API with a real coordinator: one is killed, and the others go on without it.
#include <doctest/doctest.h>
#include <signal.h>

#include <atomic>
#include <thread>

#include "tests/support/fleets/cluster.hpp"
#include "tests/support/mentions.hpp"
#include "worker/api/worker.hpp"
#include "worker/engine/failure/errc.hpp"

using namespace chorus::testing;
using chorus::engine::EngineErrc;
using chorus::testing::mentions;

namespace {

chorus::Worker start(std::string const& id, Cluster const& cluster, bool shares_memory) {
  chorus::WorkerOptions options;
  options.coordinator = cluster.coordinator.url;
  options.id = id;
  options.shares_memory = shares_memory;
  options.log_level = "off";
  return chorus::Worker::start(options).value();
}

auto in_a_minute() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

void make_group_when_ready(Cluster& cluster, std::string const& body) {
  std::string answer;
  bool const made = eventually([&] {
    auto const result = cluster.coordinator.put("/v1/groups/g", body);
    answer = result.body;
    return result.status / 100 == 2;
  });
  INFO(answer);
  REQUIRE(made);
}

}  // namespace

TEST_CASE("a program that is killed during its calls is named, and the others join the next epoch") {
  for (bool const shares_memory : {true, false}) {
    Cluster cluster(0);
    auto worker = start("a", cluster, shares_memory);
    Process victim({binary("looping_member"), cluster.coordinator.url, "b", "ring"});
    make_group_when_ready(cluster, R"({"workers":["a","b"]})");
    auto group = worker.join("g", in_a_minute()).value();
    std::vector<float> x(10000, 1);
    chorus::CollectiveOptions const max{.reduce = chorus::ReduceOp::max, .algorithm = "ring"};
    for (int call = 0; call < 100; ++call) REQUIRE(group.all_reduce(x, max).has_value());
    CHECK(group.path() == (shares_memory ? "shm" : "links"));
    victim.read_line();
    victim.signal(SIGKILL);
    auto const begun = std::chrono::steady_clock::now();
    auto status = group.all_reduce(x, max);
    while (status.has_value()) status = group.all_reduce(x, max);
    CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(10));
    INFO(status.error().detail);
    CHECK(status.error().code == EngineErrc::peer_lost);
    CHECK(mentions(status.error().detail, "b"));
    victim.wait();

    make_group_when_ready(cluster, R"({"workers":["a"]})");
    auto next = worker.join("g", in_a_minute()).value();
    CHECK(next.epoch() > group.epoch());
    CHECK(next.size() == 1);
    CHECK(next.all_reduce(x, max).has_value());
    CHECK(group.barrier().has_error());
  }
}

TEST_CASE("a program that is stopped during its calls is named long before their time is over") {
  for (bool const shares_memory : {true, false}) {
    Cluster cluster(0);
    auto worker = start("a", cluster, shares_memory);
    Process victim({binary("looping_member"), cluster.coordinator.url, "b", "ring"});
    make_group_when_ready(cluster, R"({"workers":["a","b"]})");
    auto group = worker.join("g", in_a_minute()).value();
    std::vector<float> x(10000, 1);
    chorus::CollectiveOptions const max{
        .reduce = chorus::ReduceOp::max, .algorithm = "ring", .timeout = std::chrono::minutes(10)};
    REQUIRE(group.all_reduce(x, max).has_value());
    CHECK(group.path() == (shares_memory ? "shm" : "links"));
    victim.read_line();
    victim.signal(SIGSTOP);
    auto status = group.all_reduce(x, max);
    while (status.has_value()) status = group.all_reduce(x, max);
    INFO(status.error().detail);
    CHECK(status.error().code == EngineErrc::peer_lost);
    CHECK(mentions(status.error().detail, "b"));
  }
}

TEST_CASE("a program that is killed between two calls is named by a root that only receives from it") {
  Cluster cluster(0);
  auto worker = start("a", cluster, false);
  Process victim({binary("looping_member"), cluster.coordinator.url, "b", "tree", "3"});
  make_group_when_ready(cluster, R"({"workers":["a","b"]})");
  auto group = worker.join("g", in_a_minute()).value();
  std::vector<float> x(10000, 1);
  chorus::CollectiveOptions const max{.reduce = chorus::ReduceOp::max, .algorithm = "tree"};
  for (int call = 0; call < 3; ++call) REQUIRE(group.all_reduce(x, max).has_value());
  REQUIRE(victim.read_line() == "calling");
  REQUIRE(victim.read_line() == "resting");
  victim.signal(SIGKILL);
  victim.wait();

  auto const begun = std::chrono::steady_clock::now();
  auto const status = group.all_reduce(x, max);
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(10));  // its timeout is 30 s
  REQUIRE(status.has_error());
  INFO(status.error().detail);
  CHECK(status.error().code == EngineErrc::peer_lost);
  CHECK(mentions(status.error().detail, "b"));
}

TEST_CASE("a program that comes late to its calls is named as slow") {
  for (bool const shares_memory : {true, false}) {
    Cluster cluster(0, {}, {"--lease-ms", "500"});
    auto punctual = start("a", cluster, shares_memory);
    auto late = start("b", cluster, shares_memory);
    make_group_when_ready(cluster, R"({"workers":["a","b"]})");
    auto const slow = [&] { return cluster.coordinator.get("/v1/groups/g").json().at("slow").as_array(); };
    std::atomic<bool> ends = false;
    auto const call = [&](chorus::Worker& worker, std::chrono::milliseconds lateness) {
      auto group = worker.join("g", in_a_minute()).value();
      std::vector<float> x(1000, 1);
      while (!ends && group.all_reduce(x, {.reduce = chorus::ReduceOp::max}).has_value()) {
        auto const until = std::chrono::steady_clock::now() + lateness;
        std::this_thread::sleep_until(until);  // what makes this member late
      }
    };
    std::thread other([&] { call(punctual, std::chrono::milliseconds(0)); });
    std::thread one([&] { call(late, std::chrono::milliseconds(30)); });
    CHECK(eventually([&] { return slow().size() == 1 && slow()[0].at("worker") == "b"; }, std::chrono::seconds(30)));
    ends = true;
    make_group_when_ready(cluster, R"({"workers":["a"]})");  // ends the call of a member that waits alone
    other.join();
    one.join();
  }
}

TEST_CASE("the coordinator's collectives and a program's calls run beside each other") {
  Cluster cluster(1);
  auto worker = start("a", cluster, true);
  make_group_when_ready(cluster, R"({"workers":["a"]})");
  auto group = worker.join("g", in_a_minute()).value();
  std::vector<float> x(10, 1);
  auto const handle = group.all_reduce_async(x);
  CHECK(cluster.run({{"group", "g"}, {"op", "barrier"}}).at("state") == "succeeded");
  CHECK(handle.wait().has_value());
}
