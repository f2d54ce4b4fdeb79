// Groups of hundreds of members, over real sockets with workers that answer as the story tells them.
#include <doctest/doctest.h>
#include <boost/json/serialize.hpp>

#include <set>

#include "server/coordinator/groups/rank_assignment.hpp"
#include "server/coordinator/testing/fake_worker.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using boost::asio::awaitable;

namespace {

awaitable<void> has_roles_on_request(World* world) {
  co_await world->stand();
  auto const members = std::to_string(world->workers.size());
  auto const group = co_await world->get("/v1/groups/g");
  CHECK(group.text("/members/256/roles") == "[]");
  CHECK(group.text("/selection/0/op") == "all_reduce");
  // Half a kilobyte for a member, not for a pair of members.
  CHECK(group.body.size() < world->workers.size() * 512);
  auto const member = co_await world->get("/v1/groups/g/members/256");
  CHECK(member.status == 200);
  CHECK(member.text("/worker") == group.text("/members/256/worker"));
  CHECK(member.text("/roles/0/algorithm") == "centralized");
  CHECK(member.text("/roles/0/role") == "leaf");
  CHECK((co_await world->get("/v1/groups/g/members/0")).text("/roles/0/role") == "root");
  auto const beyond = co_await world->get("/v1/groups/g/members/" + members);
  CHECK(beyond.code() == "unknown_worker");
  CHECK(beyond.text("/detail") == "group 'g' has " + members + " ranks, none of which is " + members);
  CHECK((co_await world->get("/v1/groups/g/members/-1")).code() == "bad_request");
  CHECK((co_await world->get("/v1/groups/other/members/0")).code() == "unknown_group");
}

awaitable<void> launches_without_naming_the_members(World* world) {
  co_await world->stand();
  for (std::string const reproducible : {"", R"(,"reproducible":true,"algorithm":"allpairs")"}) {
    auto const asked = R"({"group":"g","tensor":"x")" + reproducible + '}';
    CHECK((co_await world->post("/v1/collectives?wait=60s", asked)).text("/state") == "succeeded");
    auto const is_by_worker = !reproducible.empty();
    std::set<std::uint32_t> ranks;
    for (auto const& worker : world->workers) {
      auto const& run = worker->runs.back();
      CHECK(run.members.empty());
      CHECK(run.by_worker == is_by_worker);
      ranks.insert(run.rank);
      worker->tensors["x"].version = 1;
    }
    CHECK(ranks.size() == world->workers.size());
  }
}

awaitable<void> names_every_member_that_does_not_take_the_epoch(World* world) {
  co_await world->stand();
  for (std::size_t const dead : {3, 256}) co_await world->workers[dead]->die();
  auto const refused = co_await world->put("/v1/groups/g", R"({"size":)" + std::to_string(world->workers.size()) + "}");
  CHECK(refused.code() == "worker_unreachable");
  auto const ranks = refused.text("/ranks");
  CHECK(refused.json.at("ranks").as_array().size() == 2);
  for (auto const& rank : refused.json.at("ranks").as_array()) {
    auto const member = co_await world->get("/v1/groups/g/members/" + boost::json::serialize(rank));
    CHECK((member.text("/worker") == "w3" || member.text("/worker") == "w256"));
  }
  CHECK((co_await world->get("/v1/groups/g")).text("/state") == "degraded");
}

}  // namespace

TEST_CASE("above 256 members the answer grows with the members, and roles are asked for one by one") {
  World world(ranks_with_roles + 1);
  world.tell(has_roles_on_request(&world));
}

TEST_CASE("a launch for more than 256 members does not name the members to each of them") {
  World world(ranks_with_roles + 1);
  for (auto& worker : world.workers) worker->tensors["x"] = {};
  world.tell(launches_without_naming_the_members(&world));
}

TEST_CASE("of many members, those that do not take an epoch are named") {
  World world(ranks_with_roles + 1);
  world.tell(names_every_member_that_does_not_take_the_epoch(&world));
}
