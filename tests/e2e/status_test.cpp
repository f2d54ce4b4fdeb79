// Views for people, from real processes: the verdict, traffic, a demonstration, clocks.
#include <doctest/doctest.h>

#include <chrono>
#include <functional>

#include "tests/support/fleets/cluster.hpp"

using namespace chorus::testing;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

std::string verdict(Cluster const& cluster, char const* field) {
  return cluster.coordinator.get("/v1/status").json().at("verdict").at(field).as_string().c_str();
}

bool within(std::chrono::milliseconds patience, std::function<bool()> const& condition) {
  for (auto const until = Clock::now() + patience; Clock::now() < until;)
    if (condition()) return true;
  return condition();
}

}  // namespace

TEST_CASE("a worker that is killed while idle is named at once, however long its lease is") {
  Cluster cluster(3, {}, {"--lease-ms", "6000"});
  cluster.make_group("g");
  CHECK(verdict(cluster, "level") == "green");
  // A renewal reports the connections; the first renewal comes after a third of the lease.
  CHECK(within(5s, [&] {
    auto const route =
        R"(chorus_http_request_duration_seconds_count{code_class="2xx",method="PUT",route="/v1/workers/{id}/lease")";
    return cluster.coordinator.metric(route) >= 3;
  }));
  cluster.kill_worker(1);
  CHECK(within(2s, [&] { return verdict(cluster, "level") == "red"; }));
  CHECK(verdict(cluster, "text").find("2 of 3 workers ready; waiting for w1, last heard ") == 0);
}

TEST_CASE("the demonstration gives the right sums repeatedly, and its traffic is shown") {
  Cluster cluster(3);
  for (int turn = 1; turn <= 2; ++turn) {
    auto const launched = cluster.coordinator.post("/v1/demo", R"({"elements":100000})");
    CHECK(launched.status == 202);
    auto const done = cluster.coordinator.get(launched.header("Location") + "?wait=20s").json();
    CHECK(done.at("state") == "succeeded");
    CHECK(done.at("request").at("group") == "demo");
    CHECK(done.at("epoch") == 1);  // the group is made once
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(cluster.worker(i).get_tensor<std::int32_t>("chorus.demo") == std::vector<std::int32_t>(100000, 1 + 2 + 3));
  }
  auto const traffic = cluster.coordinator.get("/v1/links/traffic?group=demo").json();
  CHECK(traffic.at("silent").as_array().empty());
  std::int64_t sent = 0;
  for (auto const& link : traffic.at("items").as_array()) sent += link.at("sent_bytes").to_number<std::int64_t>();
  CHECK(sent > 2 * 100000 * 4);  // any all_reduce of 3 ranks sends more than the vector twice
}

TEST_CASE("the clocks of a parameter's clients are collected from its owners") {
  Cluster cluster(2);
  cluster.make_group("g");
  auto const made = cluster.coordinator.put(
      "/v1/parameters/w", R"({"group":"g","shape":[1000],"shards":2,"staleness":3,"clients":["a","b"]})");
  REQUIRE(made.status == 201);
  auto const shards = cluster.coordinator.get("/v1/parameters/w/shards").json().at("items").as_array();
  REQUIRE(shards.size() == 2);
  for (auto const& shard : shards) {
    CHECK(shard.at("role") == "owner");
    CHECK(shard.at("clocks").as_array().size() == 2);
    CHECK(shard.at("clocks").at(1).at("client") == "b");
    CHECK(shard.at("clocks").at(1).at("clocks_done") == 0);
  }
}
