// The coordinator over real sockets: members, groups, and the service itself. Workers answer as the story tells them.
#include <doctest/doctest.h>

#include "http/json/json.hpp"
#include "metrics/build/build.hpp"
#include "server/coordinator/testing/fake_worker.hpp"
#include "tests/support/mentions.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using std::chrono_literals::operator""ms;
using boost::asio::awaitable;
using chorus::testing::mentions;
using http::Method;

namespace {

constexpr char const* body = R"({"group":"g","tensor":"x","algorithm":"ring"})";

CoordinatorOptions impatient() {
  CoordinatorOptions options;
  options.execution.report = 100ms;
  options.execution.abort = 300ms;
  options.cluster.assignment = 500ms;
  return options;
}

awaitable<void> join_and_leave(World* world) {
  auto& worker = *world->workers[0];
  auto const joined = co_await world->join(0);
  CHECK(joined.status == 201);
  CHECK(joined.fields.find("Location") == "/v1/workers/w0");
  CHECK(joined.text("/state") == "ready");
  CHECK(joined.text("/lease_ms") == "5000");
  CHECK(worker.probes == 1);
  CHECK((co_await world->join(0)).status == 200);

  CHECK((co_await world->put("/v1/workers/w0/lease", R"({"incarnation":"0000000000000001"})")).text("/lease_ms") ==
        "5000");
  auto const of_a_newer_release = R"({"incarnation":"0000000000000001","mood":"good"})";
  CHECK((co_await world->put("/v1/workers/w0/lease", of_a_newer_release)).status == 200);
  CHECK((co_await world->put("/v1/workers/w0/lease", R"({"incarnation":"0000000000000002"})")).code() ==
        "epoch_fenced");
  CHECK((co_await world->put("/v1/workers/w1/lease", R"({"incarnation":"0000000000000001"})")).code() ==
        "unknown_worker");

  CHECK((co_await world->join(1)).status == 201);
  auto const page = co_await world->get("/v1/workers?limit=1");
  CHECK(page.text("/items/0/id") == "w0");
  CHECK(page.text("/next_cursor") == "w0");
  auto const last = co_await world->get("/v1/workers?limit=1&cursor=w0");
  CHECK(last.text("/items/0/id") == "w1");
  CHECK((co_await world->get("/v1/workers?limit=0")).code() == "bad_request");

  CHECK((co_await world->call(Method::delete_, "/v1/workers/w0?incarnation=0000000000000002")).code() ==
        "epoch_fenced");
  CHECK((co_await world->call(Method::delete_, "/v1/workers/w0")).status == 204);
  CHECK((co_await world->get("/v1/workers/w0")).code() == "unknown_worker");

  CHECK((co_await world->call(Method::delete_, "/v1/workers/w1/lease")).code() == "bad_request");
  CHECK((co_await world->call(Method::delete_, "/v1/workers/w1/lease?incarnation=0000000000000002")).code() ==
        "epoch_fenced");
  CHECK((co_await world->call(Method::delete_, "/v1/workers/w1/lease?incarnation=0000000000000001")).status == 204);
  CHECK((co_await world->get("/v1/workers/w1")).code() == "unknown_worker");
}

awaitable<void> unreachable_join(World* world) {
  auto& worker = *world->workers[0];
  co_await worker.die();
  auto const refused = co_await world->join(0);
  CHECK(refused.status == 502);
  CHECK(refused.code() == "worker_unreachable");
  CHECK(mentions(refused.text("/detail"), worker.url()));
  CHECK((co_await world->get("/v1/workers/w0")).code() == "unknown_worker");
}

awaitable<void> new_incarnation(World* world) {
  co_await world->stand();
  FakeWorker again(world->io.get_executor(), "w1", 2);
  auto const joined = co_await world->join_as(again);
  CHECK(joined.status == 200);
  CHECK((co_await world->get("/v1/groups/g")).text("/state") == "degraded");
  CHECK((co_await world->get("/v1/groups/g")).text("/lost/0") == "w1");
  CHECK((co_await world->join(1)).code() == "epoch_fenced");
  auto const refused = co_await world->post("/v1/collectives", body);
  CHECK(refused.code() == "group_broken");
  CHECK(refused.text("/ranks") == "[1]");
  auto const mended = co_await world->put("/v1/groups/g", R"({"size":3})");
  CHECK(mended.text("/epoch") == "2");
  CHECK(mended.text("/state") == "ready");
  CHECK((co_await world->post("/v1/collectives?wait=5s", body)).text("/state") == "succeeded");
  CHECK(again.runs.size() == 1);
  CHECK(world->workers[1]->runs.empty());
  co_await again.die();
}

awaitable<void> groups(World* world) {
  co_await world->stand();
  auto const& first = world->workers[0]->assignments.at(0);
  auto const& second = world->workers[1]->assignments.at(0);
  CHECK(first.group.epoch == 1);
  CHECK(first.worker == "w0");
  CHECK(second.worker == "w1");
  CHECK(first.token == second.token);
  CHECK(first.group.members.size() == 2);
  CHECK_FALSE(first.group.selection.empty());

  auto const again = co_await world->put("/v1/groups/g", R"({"workers":["w0","w1"]})");
  CHECK(again.status == 200);
  CHECK(again.text("/epoch") == "2");
  CHECK(world->workers[0]->assignments.at(1).token != world->workers[0]->assignments.at(0).token);
  CHECK((co_await world->get("/v1/workers/w0")).text("/groups") == R"(["g"])");
  CHECK((co_await world->get("/v1/groups")).text("/items/0/name") == "g");

  CHECK((co_await world->put("/v1/groups/g", R"({"workers":["w0","w9"]})")).text("/errors/0/pointer") == "/workers/1");
  CHECK((co_await world->put("/v1/groups/a%20b", R"({"size":1})")).code() == "invalid_field");
  CHECK((co_await world->put("/v1/groups/g", R"({"sise":1})")).code() == "invalid_field");
  CHECK((co_await world->get("/v1/groups/g")).text("/epoch") == "2");
  CHECK((co_await world->call(Method::delete_, "/v1/groups/g")).status == 204);
  CHECK((co_await world->get("/v1/groups/g")).code() == "unknown_group");
  auto const& farewell = world->workers[1]->assignments.back();
  CHECK(farewell.group.epoch == 3);
  CHECK(farewell.group.members.empty());
  CHECK((co_await world->call(Method::delete_, "/v1/groups/g")).code() == "unknown_group");
  CHECK((co_await world->put("/v1/groups/g", R"({"size":2})")).text("/epoch") == "4");
}

awaitable<void> group_not_taken(World* world) {
  co_await world->stand();
  co_await world->workers[2]->die();
  auto const refused = co_await world->put("/v1/groups/g", R"({"workers":["w0","w1","w2"]})");
  CHECK(refused.status == 502);
  CHECK(refused.code() == "worker_unreachable");
  CHECK(refused.text("/ranks") == "[2]");
  CHECK(mentions(refused.text("/detail"), "'w2'"));
  auto const group = co_await world->get("/v1/groups/g");
  CHECK(group.text("/epoch") == "1");
  CHECK(group.text("/state") == "degraded");
  CHECK((co_await world->post("/v1/collectives", body)).code() == "group_broken");
  CHECK(co_await world->until("/v1/workers/w2", "/state", "lost"));
  CHECK((co_await world->put("/v1/groups/g", R"({"size":3})")).code() == "not_enough_workers");
  auto const mended = co_await world->put("/v1/groups/g", R"({"size":2})");
  CHECK(mended.text("/epoch") == "3");
  CHECK((co_await world->post("/v1/collectives?wait=5s", body)).text("/state") == "succeeded");
}

awaitable<void> epochs_of_a_former_life(World* world) {
  world->workers[0]->epochs_seen["g"] = 5;
  world->workers[1]->epochs_seen["g"] = 19;
  for (std::size_t i = 0; i < 2; ++i) CHECK((co_await world->join(i)).status == 201);
  auto const group = co_await world->put("/v1/groups/g", R"({"size":2})");
  CHECK(group.text("/epoch") == "20");
  for (auto const& worker : world->workers) CHECK(worker->assignments.back().group.epoch == 20);
}

awaitable<void> stop_in_the_middle(World* world) {
  co_await world->stand();
  for (auto& worker : world->workers) worker->hold_runs = true;
  CHECK((co_await world->put("/v1/collectives/c", body)).status == 202);
  for (auto& worker : world->workers) CHECK(co_await worker->until_runs(1));
}

awaitable<void> service(World* world) {
  co_await world->stand();
  CHECK((co_await world->post("/v1/collectives?wait=5s", body)).text("/state") == "succeeded");
  for (auto const* path : {"/healthz", "/livez", "/readyz"}) CHECK((co_await world->get(path)).status == 200);
  auto const page = co_await world->get("/");
  CHECK(mentions(std::string(*page.fields.find("Content-Type")), "text/html"));
  for (auto const* part : {"2 of 2 workers ready", "w1", "/ui/main.js"}) CHECK(mentions(page.body, part));
  auto const about = co_await world->get("/v1");
  CHECK(about.text("/name") == "chorus-coordinator");
  for (auto const& [name, value] : metrics::fields_of(metrics::this_build()))
    CHECK(about.text("/build/" + std::string(name)) == value);
  CHECK(mentions((co_await world->get("/problems/mismatch")).body, "The ranks hold different things"));
  CHECK((co_await world->get("/problems/none")).code() == "not_found");
  auto const metrics = co_await world->get("/metrics");
  for (auto const* part :
       {"chorus_members{state=\"ready\"} 2", "chorus_collectives_total{", "route=\"/v1/collectives\""})
    CHECK(mentions(metrics.body, part));
  auto const plan = co_await world->post("/v1/plans", R"({"group":"g","bytes":1024,"algorithm":"ring"})");
  CHECK(plan.text("/verified") == "true");
  CHECK(plan.text("/algorithm") == "ring");
  CHECK((co_await world->post("/v1/plans", R"({"ranks":8,"bytes":1024})")).text("/verified") == "true");
  CHECK((co_await world->post("/v1/plans", R"({"group":"g","ranks":8})")).code() == "invalid_field");
  CHECK((co_await world->post("/v1/plans", R"({"group":"h"})")).code() == "unknown_group");

  auto const simulation = co_await world->post("/v1/simulations", R"({"topology":"hosts:2x4","bytes":1024})");
  CHECK(simulation.status == 200);
  CHECK(simulation.text("/ranks") == "8");
  CHECK_FALSE(simulation.text("/items/0/bottleneck").empty());
  CHECK((co_await world->post("/v1/simulations", R"({"ranks":8,"algorithm":"ring"})")).text("/items/0/rounds") == "14");
  auto const refused = co_await world->post("/v1/simulations", R"({"topology":"hosts:0x4"})");
  CHECK(refused.status == 422);
  CHECK(refused.text("/errors/0/pointer") == "/topology");
  CHECK((co_await world->post("/v1/simulations", R"({"ranks":65536})")).status == 422);
}

void tell(std::size_t workers, awaitable<void> (*story)(World*), CoordinatorOptions options = impatient()) {
  World world(workers, options);
  world.tell(story(&world));
}

}  // namespace

TEST_CASE("workers join, renew, are listed and leave") { tell(2, join_and_leave); }
TEST_CASE("a join whose address does not answer is refused with the address") { tell(1, unreachable_join); }
TEST_CASE("a new incarnation fences the old one and degrades its groups until the next PUT") {
  tell(3, new_incarnation);
}
TEST_CASE("a group reaches every member, and every PUT is a new epoch with a new token") { tell(2, groups); }
TEST_CASE("an epoch that a member did not take is never published, and its number never used again") {
  tell(3, group_not_taken);
}
TEST_CASE("workers that outlived a coordinator have seen higher epochs: the next coordinator goes above them") {
  tell(2, epochs_of_a_former_life);
}
TEST_CASE("stopping cancels running collectives and ends") { tell(2, stop_in_the_middle); }
TEST_CASE("health, version, metrics, problems, plans and the page of a coordinator") { tell(2, service); }
