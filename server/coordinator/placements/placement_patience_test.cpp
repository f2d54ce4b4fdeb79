// A shard that cannot be repaired at the moment, or takes long, does not hold up the copies and moves of others.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>

#include "server/coordinator/testing/fake_worker.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using boost::asio::awaitable;
using Clock = std::chrono::steady_clock;

namespace {

std::pair<std::string, std::uint32_t> const logged_shard{"logged", 0};
constexpr char const* full_disk = "no space left";
constexpr char const* silent_disk = "its disk does not answer";

FakeWorker& called(World* world, std::string const& id) {
  return **std::ranges::find_if(world->workers, [&](auto const& worker) { return worker->id == id; });
}

using Done = std::function<bool()>;

awaitable<bool> eventually(World* world, Done is_done) {
  auto const end = Clock::now() + std::chrono::seconds(10);
  while (!is_done() && Clock::now() < end) co_await world->get("/v1");
  co_return is_done();
}

// Makes a parameter with a log on w0 and w1, and another parameter on w2 and w3.
awaitable<void> stand(World* world, std::string replicas) {
  co_await world->stand();
  co_await world->put("/v1/groups/a", R"({"workers":["w0","w1"]})");
  co_await world->put("/v1/groups/b", R"({"workers":["w2","w3"]})");
  auto const logged = R"({"group":"a","shape":[4],"durability":"log","shards":1,"replicas":)" + replicas + "}";
  CHECK((co_await world->put("/v1/parameters/logged", logged)).status == 201);
  CHECK((co_await world->put("/v1/parameters/other", R"({"group":"b","shape":[4],"shards":1})")).status == 201);
}

awaitable<std::string> holder_of(World* world, std::string parameter, std::string endpoint) {
  co_return (co_await world->get("/v1/parameters/" + parameter)).text("/endpoints/" + endpoint + "/worker");
}

awaitable<void> lose(World* world, FakeWorker& worker) {
  co_await worker.die();
  co_await world->get("/v1/parameters?limit=1&suspect=" + worker.id +
                      "&incarnation=" + api::to_hex(worker.incarnation));
}

// The owner of the other parameter is about to leave.
awaitable<void> hand_over_the_other(World* world) {
  auto const before = co_await holder_of(world, "other", "0");
  auto const said = co_await world->post(
      "/v1/workers/" + before + "/handover?incarnation=" + api::to_hex(std::uint64_t{1}) + "&wait=5s", "");
  CHECK(said.text("/shards_left") == "0");
  CHECK((co_await holder_of(world, "other", "0")) != before);
}

std::size_t count(std::string const& text, std::string const& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

awaitable<void> an_heir_with_a_full_disk(World* world) {
  co_await stand(world, "2");
  auto& owner = called(world, co_await holder_of(world, "logged", "0"));
  auto& heir = called(world, co_await holder_of(world, "logged", "1"));
  heir.why_no_log = http::Problem(http::ProblemCode::unavailable, "cannot write base-1: " + std::string(full_disk));
  co_await lose(world, owner);
  Done const has_refused = [&heir] { return heir.log_refusals > 0; };
  CHECK(co_await eventually(world, has_refused));
  heir.why_no_log->detail = "cannot write base-2: " + std::string(full_disk);
  co_await hand_over_the_other(world);
  Done const has_refused_often = [&heir] { return heir.log_refusals > 3; };
  CHECK(co_await eventually(world, has_refused_often));
  CHECK(count(world->log.str(), full_disk) == 1);
  heir.why_no_log->detail = silent_disk;
  Done const is_told_anew = [world] { return count(world->log.str(), silent_disk) == 1; };
  CHECK(co_await eventually(world, is_told_anew));
  heir.why_no_log.reset();
  Done const owns_it = [&heir] { return heir.shards.at(logged_shard).role == "owner"; };
  CHECK(co_await eventually(world, owns_it));
}

awaitable<void> an_owner_that_reads_a_long_log(World* world) {
  co_await stand(world, "1");
  auto& owner = called(world, co_await holder_of(world, "logged", "0"));
  co_await lose(world, owner);
  FakeWorker successor(world->io.get_executor(), owner.id, 2);
  successor.takes_shards_silently = true;
  CHECK((co_await world->join_as(successor)).status == 200);
  Done const is_told = [&successor] { return successor.shards.contains(logged_shard); };
  CHECK(co_await eventually(world, is_told));
  CHECK(successor.shards.at(logged_shard).recover);
  co_await hand_over_the_other(world);
  successor.takes_shards_silently = false;
  successor.hear();
  CHECK(co_await world->until("/v1/parameters/logged", "/state", "ready"));
  co_await successor.die();
}

void tell(awaitable<void> (*story)(World*)) {
  auto options = impatient_options();
  options.directory.repetition = std::chrono::milliseconds(10);
  World world(4, options);
  world.tell(story(&world));
}

}  // namespace

TEST_CASE("a shard whose heir cannot write its log holds up no hand-over of others, and is reported once per reason") {
  tell(an_heir_with_a_full_disk);
}
TEST_CASE("a shard whose owner reads a long log holds up no hand-over of others") {
  tell(an_owner_that_reads_a_long_log);
}
