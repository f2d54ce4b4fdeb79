// Groups that shrink and grow, and collectives that begin again, over real sockets with workers that answer as the
// story tells them.
#include <doctest/doctest.h>

#include "server/coordinator/testing/fake_worker.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using std::chrono_literals::operator""ms;
using boost::asio::awaitable;
using http::Method;

namespace {

constexpr char const* body = R"({"group":"g","tensor":"x","algorithm":"ring"})";

CoordinatorOptions impatient() {
  auto options = impatient_options();
  options.execution.next_epoch = 2000ms;
  return options;
}

awaitable<void> stand_elastic(World* world, std::string request) {
  co_await world->stand();
  auto const group = co_await world->put("/v1/groups/g", std::move(request));
  CHECK(group.status / 100 == 2);
}

awaitable<void> goes_on_with_the_survivors(World* world) {
  co_await stand_elastic(world, R"({"workers":["w0","w1","w2"],"on_failure":"shrink","min_ranks":2})");
  for (auto& worker : world->workers) worker->hold_runs = true;
  CHECK((co_await world->put("/v1/collectives/c", body)).status == 202);
  for (auto& worker : world->workers) CHECK(co_await worker->until_runs(1));
  for (auto& worker : world->workers) worker->hold_runs = false;
  co_await world->workers[1]->die();
  auto const record = co_await world->get("/v1/collectives/c?wait=5s");
  CHECK(record.text("/state") == "succeeded");
  CHECK(record.text("/epoch") == "3");
  CHECK(record.text("/ranks/1/worker") == "w2");
  CHECK(record.text("/ranks/2").empty());
  CHECK(record.text("/attempts/0/epoch") == "2");
  CHECK(record.text("/attempts/0/error/code") == "peer_lost");
  CHECK(record.text("/attempts/0/error/ranks") == "[1]");
  CHECK(record.text("/attempts/1").empty());
  for (std::size_t const survivor : {0, 2}) {
    auto const& worker = *world->workers[survivor];
    CHECK(worker.runs.size() == 2);
    CHECK(worker.runs[0].run != worker.runs[1].run);
    CHECK(worker.runs[0].token != worker.runs[1].token);
    CHECK(worker.runs[1].epoch == 3);
    CHECK(worker.dropped.size() == 1);
    CHECK(worker.committed.size() == 1);
  }
  CHECK((co_await world->get("/v1/groups/g")).text("/state") == "ready");
}

awaitable<void> fails_below_the_least(World* world) {
  co_await stand_elastic(world, R"({"workers":["w0","w1","w2"],"on_failure":"shrink","min_ranks":3})");
  for (auto& worker : world->workers) worker->hold_runs = true;
  CHECK((co_await world->put("/v1/collectives/c", body)).status == 202);
  for (auto& worker : world->workers) CHECK(co_await worker->until_runs(1));
  co_await world->workers[1]->die();
  auto const record = co_await world->get("/v1/collectives/c?wait=5s");
  CHECK(record.text("/state") == "failed");
  CHECK(record.text("/error/code") == "peer_lost");
  CHECK(record.text("/error/ranks") == "[1]");
  CHECK((co_await world->get("/v1/groups/g")).text("/state") == "degraded");
  // A replacement makes the group complete without a PUT.
  FakeWorker again(world->io.get_executor(), "w1", 2);
  CHECK((co_await world->join_as(again)).status / 100 == 2);
  CHECK(co_await world->until("/v1/groups/g", "/state", "ready"));
  CHECK((co_await world->get("/v1/groups/g")).text("/members/2/worker") != "");
  co_await again.die();
}

awaitable<void> grows(World* world) {
  CHECK((co_await world->join(0)).status == 201);
  auto const alone = co_await world->put("/v1/groups/g", R"({"size":3,"on_failure":"shrink"})");
  CHECK(alone.text("/epoch") == "1");
  CHECK(alone.text("/members/1").empty());
  CHECK((co_await world->join(1)).status == 201);
  CHECK(co_await world->until("/v1/groups/g", "/epoch", "2"));
  CHECK((co_await world->join(2)).status == 201);
  CHECK(co_await world->until("/v1/groups/g", "/epoch", "3"));
  auto const whole = co_await world->get("/v1/groups/g");
  CHECK(whole.text("/state") == "ready");
  CHECK(whole.text("/requested/size") == "3");
  CHECK(whole.text("/members/2/worker") == "w2");
}

awaitable<void> a_leave_shrinks(World* world) {
  co_await stand_elastic(world, R"({"size":3,"on_failure":"shrink"})");
  CHECK((co_await world->call(Method::delete_, "/v1/workers/w2")).status == 204);
  CHECK(co_await world->until("/v1/groups/g", "/epoch", "3"));
  CHECK((co_await world->get("/v1/groups/g")).text("/members/2").empty());
}

awaitable<void> trouble_makes_an_epoch(World* world) {
  co_await stand_elastic(world, R"({"size":3,"on_failure":"shrink"})");
  auto const incarnation = (co_await world->get("/v1/workers/w0")).text("/incarnation");
  auto const tell = [&](std::string const& trouble) {
    return world->put("/v1/workers/w0/lease",
                      R"({"incarnation":")" + incarnation + R"(","troubles":[)" + trouble + "]}");
  };
  // A call failed and all members live: they continue in a new epoch.
  CHECK((co_await tell(R"({"group":"g","epoch":2})")).status == 200);
  CHECK(co_await world->until("/v1/groups/g", "/epoch", "3"));
  CHECK(world->workers[1]->probes > 0);
  // Handled or unknown failures change nothing.
  CHECK((co_await tell(R"({"group":"g","epoch":2},{"group":"h","epoch":1})")).status == 200);
  // A dead accused worker leaves the group at once, long before its lease has passed.
  co_await world->workers[2]->die();
  CHECK((co_await tell(R"({"group":"g","epoch":3,"accused":[{"worker":"w1","incarnation":"0000000000000001"}]})"))
            .status == 200);  // w1 only passed on the failure
  CHECK(co_await world->until("/v1/workers/w2", "/state", "lost"));
  CHECK(co_await world->until("/v1/groups/g", "/epoch", "4"));
  CHECK((co_await world->get("/v1/groups/g")).text("/members/2").empty());
}

awaitable<void> reports_of_all_members(World* world) {
  co_await stand_elastic(world, R"({"size":3,"on_failure":"shrink"})");
  auto const before = world->workers[1]->probes;
  std::string troubles;
  for (int member = 0; member < 32; ++member)
    troubles += std::string(member == 0 ? "" : ",") + R"({"group":"g","epoch":2})";
  CHECK((co_await world->put("/v1/workers/w0/lease",
                             R"({"incarnation":"0000000000000001","troubles":[)" + troubles + "]}"))
            .status == 200);
  CHECK(co_await world->until("/v1/groups/g", "/epoch", "3"));
  for (auto const& worker : world->workers) CHECK(worker->assignments.back().group.epoch == 3);
  CHECK(world->workers[1]->probes - before <= 2);
}

awaitable<void> refusals(World* world) {
  co_await world->stand();
  auto const rigid = co_await world->post("/v1/collectives", R"({"group":"g","tensor":"x","on_failure":"shrink"})");
  CHECK(rigid.code() == "invalid_field");
  CHECK(rigid.text("/errors/0/pointer") == "/on_failure");
  auto const unclear = co_await world->post("/v1/collectives", R"({"group":"g","tensor":"x","on_failure":"retry"})");
  CHECK(unclear.text("/errors/0/pointer") == "/on_failure");
  CHECK((co_await world->put("/v1/groups/h", R"({"size":2,"on_failure":"x"})")).text("/errors/0/pointer") ==
        "/on_failure");
  CHECK((co_await world->put("/v1/groups/h", R"({"size":2,"min_ranks":3})")).text("/errors/0/pointer") == "/min_ranks");
}

awaitable<void> in_place_and_asked_to_fail(World* world) {
  co_await stand_elastic(world, R"({"size":3,"on_failure":"shrink"})");
  for (auto& worker : world->workers) worker->hold_runs = true;
  auto const fails = R"({"group":"g","tensor":"x","algorithm":"ring","on_failure":"fail"})";
  CHECK((co_await world->put("/v1/collectives/c", fails)).status == 202);
  for (auto& worker : world->workers) CHECK(co_await worker->until_runs(1));
  co_await world->workers[1]->die();
  CHECK((co_await world->get("/v1/collectives/c?wait=5s")).text("/state") == "failed");
  CHECK(co_await world->until("/v1/groups/g", "/epoch", "3"));
  auto const in_place = R"({"group":"g","tensor":"x","algorithm":"ring","in_place":true})";
  CHECK((co_await world->put("/v1/collectives/d", in_place)).status == 202);
  for (std::size_t const survivor : {0, 2}) CHECK(co_await world->workers[survivor]->until_runs(2));
  co_await world->workers[2]->die();
  CHECK((co_await world->get("/v1/collectives/d?wait=5s")).text("/state") == "failed");
}

void tell(std::size_t workers, awaitable<void> (*story)(World*)) {
  World world(workers, impatient());
  for (auto& worker : world.workers) worker->tensors["x"];
  world.tell(story(&world));
}

}  // namespace

TEST_CASE("a collective that loses a member continues with the survivors as another run in the next epoch") {
  tell(3, goes_on_with_the_survivors);
}
TEST_CASE("below min_ranks it fails, and a replacement makes the group complete") { tell(3, fails_below_the_least); }
TEST_CASE("a group takes in workers that come later") { tell(3, grows); }
TEST_CASE("a member that leaves makes the group smaller") { tell(3, a_leave_shrinks); }
TEST_CASE("failures that members report of their own calls are investigated") { tell(3, trouble_makes_an_epoch); }
TEST_CASE("all members report a failed call: each is probed twice at most") { tell(3, reports_of_all_members); }
TEST_CASE("invalid requests are refused with a pointer") { tell(2, refusals); }
TEST_CASE("collectives in place or with on_failure fail do not begin again") { tell(3, in_place_and_asked_to_fail); }
