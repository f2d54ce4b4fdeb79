// An etcd that loses everything: coordinators that have seen the cluster begin nothing, until it is restored or
// somebody begins anew.
#include <doctest/doctest.h>

#include <string>

#include "tests/e2e/coordinator_fleet.hpp"
#include "tests/support/mentions.hpp"

using namespace chorus::testing;
using namespace std::chrono_literals;

namespace {

using Fleet = CoordinatorFleet;

// Starts etcd with an empty directory. Returns when both coordinators say so. The lease is long enough that the leader
// hears of the loss before it ends.
void lose_everything(Fleet& fleet) {
  fleet.etcd.kill(0);
  fleet.etcd.set_aside(0);
  fleet.etcd.start(0);
  for (std::size_t i = 0; i < fleet.size(); ++i)
    REQUIRE_MESSAGE(eventually([&] { return mentions(fleet.ready_text(i), "its keys are gone"); }, 30s),
                    fleet.ready_text(i));
}

Fleet::Setup two_coordinators() { return {.etcds = 1, .coordinators = 2, .flags = {"--etcd-lease-s", "8"}}; }

}  // namespace

TEST_CASE("an etcd that has lost all keys is not taken for a new cluster") {
  if (is_etcd_missing()) return;
  Fleet fleet({.etcds = 1, .coordinators = 2});
  fleet.etcd.kill(0);
  fleet.etcd.empty(0);
  fleet.etcd.start(0);
  REQUIRE(eventually([&] { return fleet.etcd.answers(0); }, 20s));
  auto const says = [&](std::size_t i) { return fleet.at(i).get("/readyz").body; };
  // The standby reports that the keys are gone, and the former leader launches nothing.
  CHECK(eventually([&] { return mentions(says(0), "its keys are gone") || mentions(says(1), "its keys are gone"); },
                   20s));
  CHECK(eventually([&] { return fleet.leaders() == 0; }, 20s));
  for (std::size_t i = 0; i < 2; ++i) CHECK_FALSE(fleet.launches(&fleet.at(i)));
  CHECK(fleet.etcd.post("/v3/kv/range", R"({"key":"L2Nob3J1cy8=","range_end":"L2Nob3J1czA="})").find("kvs") ==
        std::string::npos);
  // After a restart both begin with an empty state.
  for (std::size_t i = 0; i < 2; ++i) {
    fleet.end(i);
    fleet.start(i);
  }
  REQUIRE(eventually([&] { return fleet.leader() != nullptr; }, 20s));
  CHECK(fleet.leader()->get("/v1/groups/g").status == 404);
}

TEST_CASE("when etcd has lost everything the former leader answers nobody, and when it is restored a standby leads") {
  if (is_etcd_missing()) return;
  Fleet fleet(two_coordinators());
  auto* const leader = fleet.leader();
  REQUIRE(fleet.launches(leader));
  lose_everything(fleet);
  for (auto const* path : {"/v1/status", "/v1/workers", "/v1/groups/g"}) {
    auto const refused = leader->get(path);
    CHECK_MESSAGE(refused.status == 503, refused.body);
    CHECK(refused.header("Retry-After") == "1");
  }
  CHECK(leader->get("/livez").status == 200);
  fleet.etcd.kill(0);
  fleet.etcd.bring_back(0);
  fleet.etcd.start(0);
  // The supervisor starts the former leader again, and it is one of the coordinators that may lead.
  CHECK(leader->process.wait(60s) == 1);
  Service* next = nullptr;
  REQUIRE(eventually([&] { return (next = fleet.leader(leader)) != nullptr; }, 60s));
  CHECK(next->get("/v1/groups/g").json().at("epoch") == 1);
  CHECK(eventually([&] { return fleet.launches(next); }, 30s));
}

TEST_CASE("when etcd has lost everything and one coordinator begins anew, the other one ends") {
  if (is_etcd_missing()) return;
  for (bool const is_leader_restarted : {false, true}) {
    CAPTURE(is_leader_restarted);
    Fleet fleet(two_coordinators());
    auto const leader = fleet.number_of(fleet.leader());
    lose_everything(fleet);
    auto const restarted = is_leader_restarted ? leader : 1 - leader;
    fleet.end(restarted);
    fleet.start(restarted);
    CHECK(fleet.at(1 - restarted).process.wait(60s) == 1);
    REQUIRE(eventually([&] { return fleet.is_ready(restarted); }, 60s));
    // Workers find the new leader.
    Answer made;
    auto const is_made = [&] {
      made = fleet.at(restarted).put("/v1/groups/g", R"({"workers":["w0","w1"]})");
      return made.status / 100 == 2;
    };
    CHECK_MESSAGE(eventually(is_made, 30s), made.body);
    CHECK(fleet.launches(&fleet.at(restarted)));
  }
}
