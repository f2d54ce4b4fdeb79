// Several coordinators: leader and workers that are told to end leave nothing unfinished.
#include <doctest/doctest.h>
#include <signal.h>

#include <thread>

#include "tests/e2e/coordinator_fleet.hpp"
#include "tests/support/fleets/parameters.hpp"
#include "tests/support/mentions.hpp"

using namespace chorus::testing;
using namespace std::chrono_literals;
using Fleet = CoordinatorFleet;

TEST_CASE("a leader that gets SIGTERM waits for what runs, as without etcd, and then hands over") {
  if (is_etcd_missing()) return;
  Fleet fleet({.coordinators = 2, .flags = {"--drain-ms", "60000"}});
  auto* const leader = fleet.leader();
  fleet.workers[1]->process.signal(SIGSTOP);
  Answer answer;
  std::thread launch([&] {
    try {
      answer = leader->put("/v1/collectives/c?wait=30s", R"({"group":"g","tensor":"x","timeout_ms":30000})");
    } catch (std::runtime_error const&) {}  // the leader has ended
  });
  CHECK(eventually([&] { return leader->get("/v1/collectives/c").status == 200; }));
  leader->process.signal(SIGTERM);
  CHECK(eventually([&] { return mentions(fleet.ready_text(fleet.number_of(leader)), "stopping"); }));
  Answer refused;
  try {
    refused = leader->post("/v1/collectives", R"({"group":"g","tensor":"x"})");
  } catch (std::runtime_error const&) {}  // the leader has ended
  CHECK_MESSAGE((refused.status == 503 && mentions(refused.body, "stopping")), refused.body);
  fleet.workers[1]->process.signal(SIGCONT);
  launch.join();
  REQUIRE_MESSAGE(answer.status == 200, answer.body);
  CHECK_MESSAGE(answer.json().at("state") == "succeeded", answer.body);
  CHECK(leader->process.wait() == 0);
  Service* next = nullptr;
  REQUIRE(eventually([&] { return (next = fleet.leader(leader)) != nullptr; }, 20s));
  CHECK(next->get("/v1/collectives/c").json().at("state") == "succeeded");
}

TEST_CASE("a worker that gets SIGTERM while no coordinator leads hands its shards over through the next leader") {
  if (is_etcd_missing()) return;
  Fleet fleet({.etcds = 1, .coordinators = 2});
  auto* const leader = fleet.leader();
  REQUIRE(leader->put("/v1/parameters/p", R"({"group":"g","shape":[1000],"shards":2})").status == 201);
  ParameterClient client(fleet.workers[0]->url, "c");
  std::vector<float> const ones(1000, 1);
  REQUIRE(client.push("p", ParameterClient::bytes(ones)).status == 200);
  leader->process.signal(SIGKILL);
  leader->process.wait();
  fleet.workers[1]->process.signal(SIGTERM);
  CHECK(fleet.workers[1]->process.wait(60s) == 0);
  auto const pulled = client.pull("p");
  REQUIRE_MESSAGE(pulled.status == 200, pulled.body);
  CHECK(ParameterClient::values<float>(pulled.body) == ones);
}
