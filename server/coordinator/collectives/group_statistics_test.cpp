// Statistics of groups: timeouts that follow from earlier collectives, and late members.
#include <doctest/doctest.h>

#include "server/coordinator/testing/fake_worker.hpp"
#include "tests/support/mentions.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using namespace std::chrono_literals;
using boost::asio::awaitable;
using chorus::testing::mentions;

namespace {

constexpr char const* body = R"({"group":"g","tensor":"x","algorithm":"ring"})";

awaitable<World::Said> launch(World* world, char const* what = body) {
  co_return co_await world->post("/v1/collectives?wait=5s", what);
}

awaitable<void> patience(World* world) {
  co_await world->stand();
  for (auto const& worker : world->workers) worker->seconds = 1.5;
  for (int i = 0; i < 3; ++i) {
    auto const record = co_await launch(world);
    CHECK(record.text("/state") == "succeeded");
    CHECK(record.text("/timeout_ms") == "30000");
    CHECK(record.text("/request/timeout_ms") == "");
  }
  auto const record = co_await launch(world);
  CHECK(record.text("/timeout_ms") == "15000");
  CHECK(world->workers[0]->runs.back().timeout_ms <= 15000);
  CHECK(world->workers[0]->runs.back().timeout_ms > 14000);
  auto const given = co_await launch(world, R"({"group":"g","tensor":"x","timeout_ms":777})");
  CHECK(given.text("/timeout_ms") == "777");
}

awaitable<void> late(World* world) {
  co_await world->stand();
  for (auto const& worker : world->workers) worker->seconds = 0.25;
  world->workers[2]->seconds = 0.0625;
  World::Said record;
  for (int i = 0; i < 11; ++i) {
    auto const group = co_await world->get("/v1/groups/g");
    CHECK(group.text("/slow") == "[]");
    record = co_await launch(world);
  }
  CHECK(record.text("/ranks/2/late_seconds") == "1.875E-1");
  CHECK(record.text("/ranks/1/late_seconds") == "0");
  auto const group = co_await world->get("/v1/groups/g");
  CHECK(group.text("/slow/0/worker") == "w2");
  CHECK(group.text("/slow/0/rank") == "2");
  http::Fields json;
  json.set("Accept", "application/json");
  auto const events = co_await world->call(http::Method::get, "/v1/events?limit=1000", {}, std::move(json));
  CHECK(events.body.find(R"("type":"worker.slow")") != std::string::npos);
  CHECK(events.body.find("rank 2 (w2) comes late to 51 % of the operations, by 188 ms") != std::string::npos);
}

awaitable<void> late_to_their_own_calls(World* world) {
  co_await world->stand();
  for (int i = 0; i < 3; ++i) {
    auto const seconds = i == 1 ? "0.1" : "20";
    auto const id = std::to_string(i);
    auto const renewed = co_await world->put(
        "/v1/workers/w" + id + "/lease",
        R"({"incarnation":"0000000000000001","calls":[{"group":"g","epoch":1,"calls":100,"seconds":)" +
            std::string(seconds) + "}]}");
    CHECK(renewed.status == 200);
  }
  auto const group = co_await world->get("/v1/groups/g");
  CHECK(group.text("/slow/0/worker") == "w1");
  CHECK(group.text("/slow/1/worker") == "");
  // Reports of another epoch, or of an unknown group.
  auto const strange =
      co_await world->put("/v1/workers/w0/lease",
                          R"({"incarnation":"0000000000000001","calls":[{"group":"g","epoch":9,"calls":1,"seconds":1},)"
                          R"({"group":"nobody","epoch":1,"calls":1,"seconds":1}]})");
  CHECK(strange.status == 200);
}

void tell(std::size_t workers, awaitable<void> (*story)(World*)) {
  World world(workers);
  world.tell(story(&world));
}

std::string plan_of(World::Said const& record) {
  return record.text("/algorithm") + " " + record.text("/arity") + " " + record.text("/algorithm_shape");
}

awaitable<void> trial(World* world) {
  constexpr char const* automatic = R"({"group":"g","tensor":"x"})";
  co_await world->stand();
  auto const usual = plan_of(co_await launch(world, automatic));
  for (int i = 0; i < 3; ++i) CHECK(plan_of(co_await launch(world, automatic)) == usual);
  world->workers[1]->fail_runs = http::Problem(http::ProblemCode::peer_lost, "no way from w1 to w2");
  auto const failed = co_await launch(world, automatic);
  CHECK(failed.text("/state") == "failed");
  CHECK(mentions(failed.text("/reason"), "to see whether it is better"));
  CHECK(plan_of(failed) != usual);
  world->workers[1]->fail_runs.reset();
  CHECK(plan_of(co_await launch(world, automatic)) == usual);
  for (int i = 0; i < 24; ++i) CHECK(plan_of(co_await launch(world, automatic)) != plan_of(failed));
}

awaitable<void> cancelled_trial(World* world) {
  constexpr char const* automatic = R"({"group":"g","tensor":"x"})";
  co_await world->stand();
  for (int i = 0; i < 4; ++i) co_await launch(world, automatic);
  for (auto& worker : world->workers) worker->hold_runs = true;
  CHECK((co_await world->put("/v1/collectives/c", automatic)).status == 202);
  for (auto& worker : world->workers) CHECK(co_await worker->until_runs(5));
  CHECK((co_await world->call(http::Method::delete_, "/v1/collectives/c")).status < 300);
  auto const cancelled = co_await world->get("/v1/collectives/c?wait=5s");
  CHECK(cancelled.text("/state") == "cancelled");
  CHECK(mentions(cancelled.text("/reason"), "to see whether it is better"));
  for (auto& worker : world->workers) worker->hold_runs = false;
  CHECK(plan_of(co_await launch(world, automatic)) == plan_of(cancelled));
}

}  // namespace

TEST_CASE("a trial of another plan that fails is not repeated, and the next launch takes the usual plan") {
  tell(3, trial);
}
TEST_CASE("a trial that its caller cancels says nothing against the plan") { tell(3, cancelled_trial); }
TEST_CASE("a collective without a timeout gets one from the group's statistics") { tell(2, patience); }
TEST_CASE("a member that always comes late is named by its group, by the records and by an event") { tell(3, late); }
TEST_CASE("members that come late to calls without the coordinator are named, too") {
  tell(3, late_to_their_own_calls);
}
