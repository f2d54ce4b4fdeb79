// Collectives over real sockets, with workers that answer as the story tells them.
#include <doctest/doctest.h>

#include "http/json/json.hpp"
#include "server/coordinator/testing/fake_worker.hpp"
#include "tests/support/mentions.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using boost::asio::awaitable;
using chorus::testing::mentions;
using http::Method;

namespace {

constexpr char const* body = R"({"group":"g","tensor":"x","algorithm":"ring"})";

awaitable<void> success(World* world) {
  co_await world->stand();
  for (std::size_t i = 0; i < 3; ++i) world->workers[i]->tensors["x"].version = 10 + i;
  auto const done = co_await world->post("/v1/collectives?wait=5s", body);
  CHECK(done.status == 200);
  CHECK(done.text("/state") == "succeeded");
  CHECK(done.text("/algorithm") == "ring");
  CHECK(mentions(done.text("/reason"), "ring"));
  CHECK(done.text("/bytes") == "16");
  CHECK(done.text("/ranks/2/state") == "succeeded");
  CHECK(done.text("/ranks/2/report/version") == "13");
  CHECK(done.fields.find("Location") == "/v1/collectives/" + done.text("/id"));
  CHECK_FALSE(done.fields.find("Retry-After").has_value());
  std::string token;
  for (std::size_t i = 0; i < 3; ++i) {
    auto const& worker = *world->workers[i];
    CHECK(worker.committed.size() == 1);
    CHECK(worker.dropped.empty());
    auto const& run = worker.runs.at(0);
    CHECK(run.rank == i);
    CHECK(run.version == 10 + i);
    CHECK(run.elements == 4);
    CHECK(run.members.size() == 3);
    CHECK(run.members[i].url == worker.url());
    CHECK(run.timeout_ms <= 30000);
    if (i > 0) CHECK(run.token == token);
    token = run.token;
  }
  for (int call = 0; call < 20; ++call)
    CHECK((co_await world->post("/v1/collectives?wait=5s", body)).text("/state") == "succeeded");
  CHECK(world->workers[1]->tensors["x"].version == 32);
  CHECK(world->workers[1]->runs[0].run != world->workers[1]->runs[1].run);
  auto const list = co_await world->get("/v1/collectives?limit=3");
  CHECK(list.text("/items/0/id") != list.text("/items/1/id"));
  CHECK_FALSE(list.text("/next_cursor").empty());
}

awaitable<void> mismatch(World* world) {
  co_await world->stand();
  world->workers[2]->tensors["x"].shape = "5";
  auto const refused = co_await world->put("/v1/collectives/c?wait=5s", body);
  CHECK(refused.status == 409);
  CHECK(refused.code() == "mismatch");
  CHECK(refused.text("/ranks") == "[2]");
  CHECK(refused.text("/errors/0/pointer") == "/shape");
  CHECK(mentions(refused.text("/errors/0/detail"), "is 5, that of rank 0 ('w0') is 4"));
  CHECK(refused.text("/instance") == "/v1/collectives/c");
  CHECK((co_await world->get("/v1/collectives/c")).text("/state") == "failed");
  for (auto const& worker : world->workers) CHECK(worker->runs.empty());

  world->workers[2]->tensors.clear();
  world->workers[0]->tensors.clear();
  auto const missing = co_await world->post("/v1/collectives", body);
  CHECK(missing.status == 404);
  CHECK(missing.code() == "unknown_tensor");
  CHECK(missing.text("/ranks") == "[0,2]");
}

awaitable<void> refusals(World* world) {
  co_await world->stand();
  CHECK((co_await world->post("/v1/collectives", R"({"group":"h","tensor":"x"})")).code() == "unknown_group");
  CHECK((co_await world->post("/v1/collectives", R"({"group":"g","tensor":"x","op":"gahter"})")).code() ==
        "invalid_field");
  CHECK((co_await world->post("/v1/collectives", R"({"group":"g","tensor":"x","epoch":7})")).code() == "epoch_fenced");
  CHECK((co_await world->post("/v1/collectives", R"({"group":"g","tensor":"x","root":2})")).code() == "invalid_field");
  CHECK((co_await world->post("/v1/collectives", "{")).code() == "malformed_json");
  CHECK((co_await world->post("/v1/collectives?wait=forever", body)).code() == "bad_request");
  CHECK((co_await world->post("/v1/collectives?validate_only=maybe", body)).code() == "bad_request");
  CHECK((co_await world->put("/v1/collectives/a%2Fb", body)).code() == "invalid_field");
  CHECK((co_await world->get("/v1/collectives/none")).code() == "unknown_collective");
  CHECK((co_await world->get("/v1/collectives?cursor=x")).code() == "bad_request");
  http::Fields empty_key;
  empty_key.set("Idempotency-Key", "");
  CHECK((co_await world->call(Method::post, "/v1/collectives", body, empty_key)).code() == "bad_request");
  CHECK((co_await world->call(Method::delete_, "/v1/collectives")).status == 405);
  for (auto const& worker : world->workers) CHECK(worker->runs.empty());
}

awaitable<void> death(World* world) {
  co_await world->stand();
  for (auto& worker : world->workers) worker->hold_runs = true;
  CHECK((co_await world->put("/v1/collectives/c", body)).status == 202);
  for (auto& worker : world->workers) CHECK(co_await worker->until_runs(1));
  co_await world->workers[1]->die();
  auto const record = co_await world->get("/v1/collectives/c?wait=5s");
  CHECK(record.text("/state") == "failed");
  CHECK(record.text("/error/code") == "peer_lost");
  CHECK(record.text("/error/ranks") == "[1]");
  CHECK(mentions(record.text("/error/detail"), "rank 1 ('w1')"));
  CHECK(record.text("/ranks/0/state") == "failed");
  for (std::size_t const survivor : {0, 2}) {
    CHECK(world->workers[survivor]->dropped.size() == 1);
    CHECK(world->workers[survivor]->committed.empty());
  }
  CHECK(co_await world->until("/v1/workers/w1", "/state", "lost"));
  CHECK((co_await world->get("/v1/groups/g")).text("/state") == "degraded");
}

awaitable<void> lease_passes_during_a_run(World* world) {
  co_await world->stand();
  for (auto& worker : world->workers) worker->hold_runs = true;
  auto const record = co_await world->post("/v1/collectives?wait=5s", body);
  CHECK(record.text("/state") == "failed");
  CHECK(record.text("/error/code") == "peer_lost");
  CHECK(mentions(record.text("/error/detail"), "its lease has passed"));
  CHECK((co_await world->get("/v1/groups/g")).text("/state") == "degraded");
}

awaitable<void> failure_of_a_rank(World* world) {
  co_await world->stand();
  world->workers[0]->hold_runs = true;
  world->workers[2]->fail_runs = http::Problem(http::ProblemCode::internal, "out of memory");
  auto const record = co_await world->post("/v1/collectives?wait=5s", body);
  CHECK(record.status == 200);
  CHECK(record.text("/state") == "failed");
  CHECK(record.text("/error/ranks") == "[2]");
  CHECK(mentions(record.text("/error/detail"), "out of memory"));
  for (auto const& worker : world->workers) {
    CHECK(worker->committed.empty());
    CHECK(worker->dropped.size() == 1);
  }
}

awaitable<void> cancellation(World* world) {
  co_await world->stand();
  for (auto& worker : world->workers) worker->hold_runs = true;
  auto const begun = co_await world->put("/v1/collectives/c", body);
  CHECK(begun.status == 202);
  CHECK(begun.fields.find("Location") == "/v1/collectives/c");
  CHECK(begun.fields.find("Retry-After") == "1");
  for (auto& worker : world->workers) CHECK(co_await worker->until_runs(1));
  auto const cancelled = co_await world->call(Method::delete_, "/v1/collectives/c");
  CHECK(cancelled.status == 200);
  CHECK(cancelled.text("/state") == "cancelled");
  CHECK(cancelled.text("/error/code") == "cancelled");
  for (auto const& worker : world->workers) {
    CHECK(worker->dropped.size() == 1);
    CHECK(worker->committed.empty());
    worker->hold_runs = false;
  }
  CHECK((co_await world->call(Method::delete_, "/v1/collectives/c")).text("/state") == "cancelled");
  CHECK((co_await world->post("/v1/collectives?wait=5s", body)).text("/state") == "succeeded");
}

awaitable<void> deadline(World* world) {
  co_await world->stand();
  for (auto& worker : world->workers) worker->hold_runs = true;
  world->workers[1]->deaf_to_runs = true;
  for (std::size_t const waiting : {0, 2}) world->workers[waiting]->waits_for = {1};
  auto const start = std::chrono::steady_clock::now();
  auto const record = co_await world->post("/v1/collectives?wait=5s", R"({"group":"g","tensor":"x","timeout_ms":300})");
  CHECK(record.text("/state") == "failed");
  CHECK(record.text("/error/code") == "deadline_exceeded");
  CHECK(record.text("/error/ranks") == "[1]");
  CHECK(mentions(record.text("/error/detail"), "waited for rank 1 ('w1')"));
  CHECK(std::chrono::steady_clock::now() - start >= 300ms);
  CHECK(std::chrono::steady_clock::now() - start < 3s);
}

awaitable<void> silence_at_admission(World* world) {
  co_await world->stand();
  world->workers[1]->deaf_to_heads = true;
  auto const refused =
      co_await world->post("/v1/collectives?wait=5s", R"({"group":"g","tensor":"x","timeout_ms":200})");
  CHECK(refused.status == 504);
  CHECK(refused.code() == "deadline_exceeded");
  CHECK(refused.text("/ranks") == "[1]");
}

awaitable<void> idempotency(World* world) {
  co_await world->stand();
  http::Fields key;
  key.set("Idempotency-Key", "k1");
  for (auto& worker : world->workers) worker->hold_runs = true;
  auto const first = co_await world->call(Method::post, "/v1/collectives", body, key);
  CHECK(first.status == 202);
  auto const meanwhile = co_await world->call(Method::post, "/v1/collectives", body, key);
  CHECK(meanwhile.status == 202);
  CHECK(meanwhile.text("/id") == first.text("/id"));
  for (auto& worker : world->workers) {
    CHECK(co_await worker->until_runs(1));
    worker->release();
  }
  auto const spaced = R"( {"algorithm" : "ring", "tensor":"x", "group":"g", "reduce":"sum"} )";
  auto const after = co_await world->call(Method::post, "/v1/collectives?wait=5s", spaced, key);
  CHECK(after.status == 200);
  CHECK(after.text("/id") == first.text("/id"));
  CHECK(after.text("/state") == "succeeded");
  auto const other = co_await world->call(Method::post, "/v1/collectives", R"({"group":"g","tensor":"y"})", key);
  CHECK(other.status == 422);
  CHECK(other.code() == "idempotency_reused");
  CHECK((co_await world->put("/v1/collectives/" + first.text("/id"), body)).text("/state") == "succeeded");
  CHECK((co_await world->put("/v1/collectives/" + first.text("/id"), R"({"group":"g","tensor":"y"})")).code() ==
        "already_exists");
  for (auto const& worker : world->workers) CHECK(worker->runs.size() == 1);
  CHECK((co_await world->call(Method::delete_, "/v1/groups/g")).status == 204);
  CHECK((co_await world->call(Method::post, "/v1/collectives", body, key)).text("/state") == "succeeded");
}

awaitable<void> validation(World* world) {
  co_await world->stand();
  auto const planned = co_await world->post("/v1/collectives?validate_only=true", R"({"group":"g","tensor":"x"})");
  CHECK(planned.status == 200);
  CHECK(planned.text("/state") == "planned");
  CHECK_FALSE(planned.text("/reason").empty());
  CHECK(planned.json.at("considered").as_array().size() >= 3);
  world->workers[0]->tensors["x"].dtype = "i32";
  CHECK((co_await world->post("/v1/collectives?validate_only=true", body)).code() == "mismatch");
  for (auto const& worker : world->workers) CHECK(worker->runs.empty());
  CHECK((co_await world->get("/v1/collectives")).json.at("items").as_array().empty());
}

awaitable<void> long_poll(World* world) {
  co_await world->stand();
  for (auto& worker : world->workers) worker->hold_runs = true;
  CHECK((co_await world->put("/v1/collectives/c?wait=50ms", body)).status == 202);
  auto const early = co_await world->get("/v1/collectives/c?wait=20ms");
  CHECK(early.text("/state") == "running");
  CHECK(early.fields.find("Retry-After") == "1");
  for (auto& worker : world->workers) worker->release();
  auto const done = co_await world->get("/v1/collectives/c?wait=10m");
  CHECK(done.text("/state") == "succeeded");
  CHECK((co_await world->get("/v1/collectives/c?wait=11m")).code() == "bad_request");
}

awaitable<void> at_once(World* world) {
  co_await world->stand();
  CHECK((co_await world->put("/v1/groups/left", R"({"workers":["w0","w1"]})")).status == 201);
  CHECK((co_await world->put("/v1/groups/right", R"({"workers":["w1","w2"]})")).status == 201);
  for (auto& worker : world->workers) {
    worker->hold_runs = true;
    worker->tensors["y"];
  }
  auto const launch = [world](std::string id, std::string group, std::string tensor) {
    return world->put("/v1/collectives/" + id, R"({"group":")" + group + R"(","tensor":")" + tensor + R"("})");
  };
  CHECK((co_await launch("all-x", "g", "x")).text("/state") == "running");
  CHECK((co_await launch("left-y", "left", "y")).text("/state") == "running");
  CHECK((co_await launch("right-y", "right", "y")).text("/state") == "pending");
  CHECK((co_await launch("left-x", "left", "x")).text("/state") == "pending");
  CHECK(co_await world->workers[1]->until_runs(2));
  CHECK(world->workers[1]->runs.size() == 2);

  CHECK((co_await world->call(Method::delete_, "/v1/collectives/left-x")).text("/state") == "cancelled");
  for (auto& worker : world->workers) {
    worker->release();
    worker->hold_runs = false;
  }
  for (auto const* id : {"all-x", "left-y", "right-y"})
    CHECK((co_await world->get("/v1/collectives/" + std::string(id) + "?wait=5s")).text("/state") == "succeeded");
  CHECK(world->workers[1]->runs.size() == 3);
  CHECK(world->workers[1]->runs.back().version == 2);
  CHECK(world->workers[1]->tensors["y"].version == 3);
}

awaitable<void> epoch_changes_in_the_line(World* world) {
  co_await world->stand();
  for (auto& worker : world->workers) worker->hold_runs = true;
  CHECK((co_await world->put("/v1/collectives/one", body)).text("/state") == "running");
  CHECK((co_await world->put("/v1/collectives/two", body)).text("/state") == "pending");
  CHECK((co_await world->put("/v1/groups/g", R"({"size":2})")).text("/epoch") == "2");
  for (auto& worker : world->workers) {
    CHECK(co_await worker->until_runs(1));
    worker->release();
  }
  CHECK((co_await world->get("/v1/collectives/one?wait=5s")).text("/state") == "succeeded");
  CHECK((co_await world->get("/v1/collectives/two?wait=5s")).text("/error/code") == "epoch_fenced");
}

awaitable<void> corruption(World* world) {
  co_await world->stand();
  world->workers[1]->digest = "00000000000000ee";
  auto const record = co_await world->post("/v1/collectives?wait=5s", body);
  CHECK(record.text("/state") == "failed");
  CHECK(record.text("/error/code") == "digest_mismatch");
  CHECK(record.text("/error/ranks") == "[1]");
  for (auto const& worker : world->workers) {
    CHECK(worker->committed.empty());
    CHECK(worker->dropped.size() == 1);
  }
}

awaitable<void> commit_refused(World* world) {
  co_await world->stand();
  world->workers[1]->refuse_commits = http::Problem(http::ProblemCode::mismatch, "the tensor was changed");
  auto const record = co_await world->post("/v1/collectives?wait=5s", body);
  CHECK(record.text("/state") == "failed");
  CHECK(record.text("/error/code") == "mismatch");
  CHECK(record.text("/error/ranks") == "[1]");
  CHECK(mentions(record.text("/error/detail"), "the other ranks have the result"));
}

void tell(std::size_t workers, awaitable<void> (*story)(World*), CoordinatorOptions options = impatient_options()) {
  World world(workers, options);
  world.tell(story(&world));
}

}  // namespace

TEST_CASE("a collective runs and is committed on every rank, repeatedly") { tell(3, success); }
TEST_CASE("ranks that differ are refused before anything runs, with rank, field and both values") { tell(3, mismatch); }
TEST_CASE("invalid requests are refused before any worker hears of them") { tell(2, refusals); }
TEST_CASE("a worker that dies during a run is named, the others are stopped, nothing is committed") { tell(3, death); }
TEST_CASE("a worker whose lease passes during a run is lost") {
  auto options = impatient_options();
  options.lease = 300ms;
  tell(2, lease_passes_during_a_run, options);
}
TEST_CASE("a rank that fails ends the collective at once for all") { tell(3, failure_of_a_rank); }
TEST_CASE("a collective is cancelled, and the next one runs") { tell(3, cancellation); }
TEST_CASE("a collective ends at its deadline and names the silent rank") { tell(3, deadline); }
TEST_CASE("a worker that is silent at admission is named at the deadline") { tell(2, silence_at_admission); }
TEST_CASE("an Idempotency-Key and an id launch once") { tell(2, idempotency); }
TEST_CASE("validate_only admits and plans, and runs nothing") { tell(2, validation); }
TEST_CASE("a long poll returns when the collective ends, or at its own timeout") { tell(2, long_poll); }
TEST_CASE("collectives on different tensors run at once, those on the same tensor one after the other") {
  tell(3, at_once);
}
TEST_CASE("a collective that waited while its group changed is fenced") { tell(2, epoch_changes_in_the_line); }
TEST_CASE("results that differ between ranks are never committed") { tell(3, corruption); }
TEST_CASE("the report of a commit that one rank refuses says what the others did") { tell(2, commit_refused); }
