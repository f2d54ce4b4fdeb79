// Launches that use the metadata of earlier launches, and their end when the metadata are wrong.
#include <doctest/doctest.h>

#include "base/runtime/task_group.hpp"
#include "server/coordinator/testing/fake_worker.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using std::chrono_literals::operator""ms;
using boost::asio::awaitable;
using http::Method;

namespace {

constexpr auto shortest_admission = 200ms;
constexpr char const* body = R"({"group":"g","tensor":"x","algorithm":"ring"})";

awaitable<World::Said> launch(World* world, std::string what = body) {
  co_return co_await world->post("/v1/collectives?wait=5s", std::move(what));
}

// Later launches ask no worker: the first launch has stored the metadata, the second has confirmed them.
awaitable<void> grow_used_to_it(World* world) {
  co_await world->stand();
  for (int i = 0; i < 2; ++i) CHECK((co_await launch(world)).text("/state") == "succeeded");
}

void put(FakeWorker& worker, std::string dtype, std::string shape) {
  auto& tensor = worker.tensors["x"];
  tensor.dtype = std::move(dtype);
  tensor.shape = std::move(shape);
  ++tensor.version;
}

std::size_t looks(World const& world) {
  std::size_t sum = 0;
  for (auto const& worker : world.workers) sum += worker->looks;
  return sum;
}

std::size_t refused(World const& world) {
  std::size_t sum = 0;
  for (auto const& worker : world.workers) sum += worker->refused.size();
  return sum;
}

awaitable<void> nobody_is_asked(World* world) {
  co_await grow_used_to_it(world);
  CHECK(looks(*world) == 6);
  auto const asked = co_await world->get("/v1/collectives?limit=1");
  auto const unasked = co_await launch(world);
  CHECK(unasked.text("/state") == "succeeded");
  CHECK(looks(*world) == 6);
  CHECK(unasked.text("/ranks/2/report/version") == "4");
  for (std::string const field : {"dtype", "shape", "bytes", "algorithm", "considered", "epoch", "timeout_ms",
                                  "lower_bound", "attempts", "ranks/0/device", "ranks/0/state"}) {
    INFO(field);
    CHECK_FALSE(unasked.text("/" + field).empty());
    CHECK(unasked.text("/" + field) == asked.text("/items/0/" + field));
  }
  for (auto const& worker : world->workers) {
    CHECK(worker->runs.back().version == 3);
    CHECK(worker->committed.size() == 3);
    CHECK(worker->dropped.empty());
  }
  for (int i = 0; i < 20; ++i) CHECK((co_await launch(world)).text("/state") == "succeeded");
  CHECK((co_await launch(world, R"({"group":"g","tensor":"x","op":"reduce","root":1})")).text("/state") == "succeeded");
  CHECK(looks(*world) == 6);
}

awaitable<void> one_has_another_shape(World* world) {
  co_await grow_used_to_it(world);
  put(*world->workers[2], "f32", "5");
  for (std::size_t const other : {0, 1}) world->workers[other]->hold_runs = true;
  auto const refused = co_await world->put("/v1/collectives/c?wait=5s", body);
  CHECK(refused.status == 409);
  CHECK(refused.code() == "mismatch");
  CHECK(refused.text("/ranks") == "[2]");
  CHECK(refused.text("/errors/0/detail") == "shape of rank 2 ('w2') is 5, that of rank 0 ('w0') is 4");
  auto const record = co_await world->get("/v1/collectives/c");
  CHECK(record.text("/state") == "failed");
  CHECK(record.text("/attempts") == "[]");
  CHECK(record.text("/ranks") == "[]");
  CHECK(record.text("/algorithm").empty());
  CHECK(record.text("/seconds") == "0");
  for (std::size_t const other : {0, 1}) {
    auto const& worker = *world->workers[other];
    CHECK(worker.dropped == std::vector{worker.runs.back().run});
    CHECK(worker.committed.size() == 2);
    CHECK(worker.tensors.at("x").version == 3);
    world->workers[other]->hold_runs = false;
  }
  put(*world->workers[2], "f32", "4");
  CHECK((co_await launch(world)).text("/state") == "succeeded");
}

awaitable<void> all_have_another_shape(World* world) {
  co_await grow_used_to_it(world);
  for (auto& worker : world->workers) put(*worker, "i32", "7");
  auto const record = co_await launch(world);
  CHECK(record.status == 200);
  CHECK(record.text("/state") == "succeeded");
  CHECK(record.text("/dtype") == "i32");
  CHECK(record.text("/shape") == "[7]");
  CHECK(record.text("/attempts") == "[]");
  CHECK(record.text("/ranks/1/report/version") == "5");
  for (auto const& worker : world->workers) {
    CHECK(worker->runs.back().elements == 7);
    CHECK(std::to_string(worker->runs.back().run) == record.text("/run"));
    CHECK(worker->committed.size() == 3);
    CHECK(worker->committed.back() == worker->runs.back().run);
  }
}

awaitable<void> one_has_none(World* world) {
  co_await grow_used_to_it(world);
  world->workers[1]->tensors.erase("x");
  auto const refused = co_await launch(world);
  CHECK(refused.status == 404);
  CHECK(refused.code() == "unknown_tensor");
  CHECK(refused.text("/ranks") == "[1]");
}

awaitable<void> new_tensors_each_time(World* world) {
  co_await world->stand();
  for (int i = 0; i < 5; ++i) {
    for (auto& worker : world->workers) put(*worker, "f32", "4");
    CHECK((co_await launch(world)).text("/state") == "succeeded");
  }
  CHECK(refused(*world) == 0);
  CHECK(looks(*world) == 15);
  // After they were wrong, the metadata must be confirmed again.
  for (int i = 0; i < 2; ++i) co_await launch(world);
  CHECK(looks(*world) == 18);
  put(*world->workers[0], "f32", "4");
  for (int i = 0; i < 2; ++i) CHECK((co_await launch(world)).text("/state") == "succeeded");
  CHECK(refused(*world) == 1);
  CHECK(looks(*world) == 24);
}

awaitable<void> a_new_epoch(World* world) {
  co_await grow_used_to_it(world);
  CHECK((co_await world->put("/v1/groups/g", R"({"size":3})")).text("/epoch") == "2");
  CHECK((co_await launch(world)).text("/state") == "succeeded");
  CHECK(looks(*world) == 9);
  CHECK((co_await world->call(Method::delete_, "/v1/groups/g")).status == 204);
  CHECK((co_await world->put("/v1/groups/g", R"({"size":3})")).text("/epoch") == "4");
  CHECK((co_await launch(world)).text("/state") == "succeeded");
  CHECK(looks(*world) == 12);
}

awaitable<void> what_always_asks(World* world) {
  co_await grow_used_to_it(world);
  auto const before = looks(*world);
  CHECK((co_await world->post("/v1/collectives?validate_only=true", body)).text("/state") == "planned");
  CHECK(looks(*world) == before + 3);
  put(*world->workers[2], "f32", "5");
  CHECK((co_await world->post("/v1/collectives", body)).code() == "mismatch");
  CHECK(looks(*world) == before + 6);
  put(*world->workers[2], "f32", "4");
  for (int i = 0; i < 2; ++i) CHECK((co_await launch(world)).text("/state") == "succeeded");
  auto const again = looks(*world);
  CHECK((co_await launch(world, R"({"group":"g","tensor":"x","in_place":true})")).text("/state") == "succeeded");
  CHECK((co_await launch(world, R"({"group":"g","tensor":"x","op":"broadcast"})")).text("/state") == "succeeded");
  CHECK(looks(*world) == again + 6);
}

awaitable<void> large_ones_ask(World* world) {
  co_await world->stand();
  for (auto& worker : world->workers) put(*worker, "u8", "1048577");
  for (int i = 0; i < 4; ++i) CHECK((co_await launch(world)).text("/state") == "succeeded");
  CHECK(looks(*world) == 12);
}

awaitable<void> one_is_gone(World* world) {
  co_await grow_used_to_it(world);
  co_await world->workers[1]->die();
  auto const refused = co_await launch(world);
  CHECK(refused.status == 502);
  CHECK(refused.code() == "worker_unreachable");
  CHECK(refused.text("/ranks") == "[1]");
}

awaitable<void> note(World* world, std::vector<std::string>* ended, std::string id, std::string query) {
  auto const said = co_await world->put("/v1/collectives/" + id + query, body);
  CHECK(said.text("/state") == "succeeded");
  ended->push_back(id);
}

// Slow is not silent: nothing begins again, even after the patience of an admission.
awaitable<void> one_is_slow(World* world) {
  co_await grow_used_to_it(world);
  world->workers[1]->hold_runs = true;
  http::TaskGroup tasks(world->io.get_executor());
  std::vector<std::string> ended;
  tasks.spawn("slow", note(world, &ended, "slow", "?wait=5s"));
  CHECK(co_await world->workers[1]->until_runs(3));
  http::Condition nothing(world->io.get_executor());
  co_await nothing.wait_until(std::chrono::steady_clock::now() + 3 * shortest_admission);
  world->workers[1]->release();
  co_await tasks.join();
  CHECK(ended == std::vector<std::string>{"slow"});
  CHECK(looks(*world) == 6);
  CHECK(world->workers[0]->runs.size() == 3);
}

// The peers of a silent worker report it, as they would if it had fallen silent after an answer.
awaitable<void> one_is_silent(World* world) {
  co_await grow_used_to_it(world);
  world->workers[1]->deaf_to_heads = world->workers[1]->deaf_to_runs = true;
  world->workers[0]->fail_runs = http::Problem(http::ProblemCode::peer_lost, "lost rank 1 (w1)");
  world->workers[0]->fail_runs->ranks = {1};
  auto const record = co_await launch(world);
  CHECK(record.status == 200);
  CHECK(record.text("/error/code") == "peer_lost");
  CHECK(record.text("/error/ranks") == "[1]");
  CHECK(looks(*world) == 6);
}

// A failure of its own ends the collective, with or without admission by the cache.
awaitable<void> one_fails(World* world) {
  co_await grow_used_to_it(world);
  world->workers[2]->fail_runs = http::Problem(http::ProblemCode::internal, "out of memory");
  auto const record = co_await launch(world);
  CHECK(record.status == 200);
  CHECK(record.text("/error/ranks") == "[2]");
  CHECK(looks(*world) == 6);
  CHECK(world->workers[0]->runs.size() == 3);
}

awaitable<void> its_place_is_kept(World* world) {
  co_await grow_used_to_it(world);
  put(*world->workers[2], "f32", "4");
  world->workers[2]->deaf_to_runs = true;
  std::vector<std::string> ended;
  http::TaskGroup tasks(world->io.get_executor());
  tasks.spawn("mistaken", note(world, &ended, "mistaken", "?wait=5s"));
  CHECK(co_await world->workers[2]->until_runs(3));
  tasks.spawn("second", note(world, &ended, "second", "?wait=5s"));
  CHECK(co_await world->until("/v1/collectives/second", "/state", "pending"));
  CHECK((co_await world->get("/v1/collectives/mistaken")).text("/state") == "running");
  world->workers[2]->deaf_to_runs = false;
  world->workers[2]->hear();
  co_await tasks.join();
  CHECK(ended == std::vector<std::string>{"mistaken", "second"});
  auto const mistaken = co_await world->get("/v1/collectives/mistaken");
  CHECK(mistaken.text("/run") == std::to_string(world->workers[0]->committed.at(2)));
}

// Another rank does not stop before the deadline: no rank is blamed for a tensor that is in order.
awaitable<void> it_is_too_late_to_ask(World* world) {
  co_await grow_used_to_it(world);
  put(*world->workers[2], "f32", "4");
  world->workers[0]->deaf_to_runs = true;
  auto const record = co_await launch(world, R"({"group":"g","tensor":"x","algorithm":"ring","timeout_ms":100})");
  CHECK(record.text("/error/code") == "deadline_exceeded");
  CHECK(record.text("/error/ranks").empty());
  world->workers[0]->deaf_to_runs = false;
  world->workers[0]->hear();
  CHECK((co_await launch(world)).text("/state") == "succeeded");
}

awaitable<void> it_is_cancelled(World* world) {
  co_await grow_used_to_it(world);
  for (auto& worker : world->workers) worker->hold_runs = true;
  CHECK((co_await world->put("/v1/collectives/c?wait=1s", body)).status == 202);
  auto const cancelled = co_await world->call(Method::delete_, "/v1/collectives/c");
  CHECK(cancelled.text("/state") == "cancelled");
  CHECK(looks(*world) == 6);
}

// Workers know the run in vain: no later run may have its number.
awaitable<void> numbers_survive(World* world) {
  co_await grow_used_to_it(world);
  put(*world->workers[2], "f32", "4");
  CHECK((co_await launch(world)).text("/state") == "succeeded");
  auto const last = world->workers[0]->runs.back().run;
  co_await world->restart();
  CHECK((co_await world->put("/v1/workers/w0/lease", R"({"incarnation":"0000000000000001"})")).status == 200);
  CHECK((co_await launch(world)).text("/state") == "succeeded");
  CHECK(world->workers[0]->runs.back().run > last);
  CHECK(looks(*world) == 12);
}

CoordinatorOptions impatient() {
  auto options = impatient_options();
  options.execution.admission = shortest_admission;
  return options;
}

void tell(awaitable<void> (*story)(World*), CoordinatorOptions options = impatient_options()) {
  World world(3, options);
  world.tell(story(&world));
}

}  // namespace

TEST_CASE("a launch like the ones before asks no worker, and its record says the same") { tell(nobody_is_asked); }
TEST_CASE("a tensor put with another shape on one rank is refused as if the worker had been asked") {
  tell(one_has_another_shape);
}
TEST_CASE("a tensor put with another shape and dtype on all ranks is reduced with these") {
  tell(all_have_another_shape);
}
TEST_CASE("a deleted tensor is named as missing") { tell(one_has_none); }
TEST_CASE("workers are asked if tensors are put between launches, and no second run is in vain") {
  tell(new_tensors_each_time);
}
TEST_CASE("a new epoch asks again") { tell(a_new_epoch); }
TEST_CASE("validate_only, callers that do not wait, in-place runs, and broadcast ask each time") {
  tell(what_always_asks);
}
TEST_CASE("large tensors are asked for each time") { tell(large_ones_ask); }
TEST_CASE("a worker that has left causes the same refusal as when it was asked") { tell(one_is_gone); }
TEST_CASE("a worker that is silent is lost to its peers") { tell(one_is_silent); }
TEST_CASE("a slow worker is waited for, whether it was asked or not") { tell(one_is_slow, impatient()); }
TEST_CASE("a launch whose time is over before it could ask ends with deadline_exceeded") {
  tell(it_is_too_late_to_ask);
}
TEST_CASE("a failed rank is a failure, and nothing is repeated") { tell(one_fails); }
TEST_CASE("a mistaken launch keeps its place in the queue") { tell(its_place_is_kept); }
TEST_CASE("a launch that asked no worker is cancelled like any other") { tell(it_is_cancelled); }
TEST_CASE("after a restart no run number is given again") {
  chorus::testing::ScratchDirectory const here;
  World world(3, impatient_options(), here / "journal");
  world.tell(numbers_survive(&world));
}
