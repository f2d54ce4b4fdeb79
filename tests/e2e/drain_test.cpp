// SIGTERM while something runs: not ready first, what runs ends well, streams end, exit 0.
#include <doctest/doctest.h>
#include <signal.h>

#include <atomic>
#include <thread>

#include "tests/support/cluster.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus::testing;
namespace json = boost::json;

namespace {

constexpr char const* body = R"({"group":"g","tensor":"x","algorithm":"ring","timeout_ms":20000})";
constexpr std::size_t large = 16 << 20;  // elements: long enough to be told in the middle

void put_everywhere(Cluster& cluster) {
  for (std::size_t i = 0; i < cluster.size(); ++i)
    REQUIRE(cluster.worker(i).put_tensor("x", "f32", std::vector<float>(large, static_cast<float>(i + 1))).status ==
            201);
}

bool is_running(Cluster& cluster, std::string const& id) {
  return eventually([&] {
    auto const record = cluster.coordinator.get("/v1/collectives/" + id);
    return record.status == 200 && record.json().at("state") == "running";
  });
}

// GET /v1/events to its end, as text.
std::string events_of(std::string const& url, std::atomic<bool>& connected) {
  httplib::Client client(url);
  client.set_read_timeout(60);
  std::string text;
  client.Get("/v1/events", {{"Accept", "text/event-stream"}}, [&](char const* data, std::size_t size) {
    text.append(data, size);
    connected = true;
    return true;
  });
  return text;
}

}  // namespace

TEST_CASE("a coordinator that is told to stop finishes what runs, refuses more, ends its streams and exits with 0") {
  ScratchDirectory const here;
  Cluster cluster(3, {}, {"--journal", here / "journal"});
  cluster.make_group("g");
  put_everywhere(cluster);
  std::atomic<bool> follows = false;
  std::string events;
  std::thread follower([&] { events = events_of(cluster.coordinator.url, follows); });
  REQUIRE(eventually([&] { return follows.load(); }));
  Answer answer;
  std::thread launch([&] { answer = cluster.coordinator.put("/v1/collectives/c?wait=30s", body); });
  REQUIRE(is_running(cluster, "c"));
  cluster.coordinator.process.signal(SIGTERM);
  bool was_refused = false, was_unready = false;
  try {
    was_unready = eventually([&] { return cluster.coordinator.get("/readyz").status == 503; });
    was_refused = cluster.coordinator.put("/v1/collectives/d", body).status == 503;
  } catch (std::runtime_error const&) {}  // it has gone
  launch.join();
  follower.join();
  CHECK(cluster.coordinator.process.wait() == 0);
  CHECK(was_unready);
  CHECK(was_refused);
  CHECK(answer.json().at("state") == "succeeded");
  CHECK(events.find("event: coordinator.stopping") < events.find("event: collective.succeeded"));
  CHECK(events.find("event: collective.succeeded") != std::string::npos);
  for (std::size_t i = 0; i < 3; ++i) CHECK(cluster.worker(i).tensor_version("x") == 2);
  CHECK_FALSE(content_of(here / "journal").empty());
}

TEST_CASE("a worker that is told to stop ends its part of what runs, leaves, and exits with 0") {
  Cluster cluster(3);
  cluster.make_group("g");
  put_everywhere(cluster);
  Answer answer;
  std::thread launch([&] { answer = cluster.coordinator.put("/v1/collectives/c?wait=30s", body); });
  REQUIRE(is_running(cluster, "c"));
  cluster.worker(1).process.signal(SIGTERM);
  launch.join();
  CHECK(cluster.worker(1).process.wait() == 0);
  CHECK(answer.json().at("state") == "succeeded");
  CHECK(cluster.coordinator.get("/v1/workers/w1").status == 404);
  CHECK(cluster.coordinator.get("/v1/groups/g").json().at("state") == "degraded");
  CHECK(cluster.worker(0).get_tensor<float>("x") == std::vector<float>(large, 1 + 2 + 3));
}
