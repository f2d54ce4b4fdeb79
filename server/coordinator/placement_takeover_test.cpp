// Many shards whose owner dies: its backups are told of many of them at a time.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string>

#include "server/coordinator/fake_worker.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using boost::asio::awaitable;

namespace {

std::string const path = "/v1/parameters/w";
std::string const many_shards = R"({"group":"g","shape":[600],"shards":600,"replicas":2})";
std::string const suspicion = "/v1/parameters?limit=1&suspect=w1&incarnation=0000000000000001";
constexpr std::size_t shards = 600;

std::size_t owned_by(FakeWorker const& worker) {
  std::size_t count = 0;
  for (auto const& [key, assignment] : worker.shards) count += assignment.role == "owner";
  return count;
}

awaitable<void> make_and_kill(World* world) {
  co_await world->stand();
  auto const made = co_await world->put(path, many_shards);
  CHECK(made.status == 201);
  CHECK(owned_by(*world->workers[0]) == shards / 2);
  co_await world->workers[1]->die();
  // Whoever misses it says so.
  co_await world->get(suspicion);
  CHECK(co_await world->until(path, "/state", "degraded"));
  CHECK(co_await world->until(path, "/endpoints/599/worker", "w0"));
  // The directory knows before the worker was told: each call gives the coordinator a turn.
  for (std::size_t calls = 0; calls < 100 * shards && owned_by(*world->workers[0]) < shards; ++calls)
    co_await world->get(path);
  CHECK(owned_by(*world->workers[0]) == shards);
}

awaitable<void> together(World* world) {
  co_await make_and_kill(world);
  auto const& orders = world->workers[0]->orders_at_a_time;
  CHECK(std::accumulate(orders.begin(), orders.end(), std::size_t{0}) == shards);
  CHECK(orders.size() <= 8);
}

awaitable<void> one_by_one(World* world) {
  world->workers[0]->takes_one_at_a_time = true;
  co_await make_and_kill(world);
  CHECK(world->workers[0]->orders_at_a_time.empty());
}

// As after a mistake of its own: it lives, and does not have what it is to own.
awaitable<void> by_an_owner_without_it(World* world) {
  for (auto& worker : world->workers) worker->takes_one_at_a_time = true;
  co_await world->stand();
  auto const made = co_await world->put(path, R"({"group":"g","shape":[4],"replicas":2,"staleness":0})");
  auto const owner = made.text("/endpoints/0/worker"), heir = made.text("/endpoints/1/worker");
  for (auto& worker : world->workers) worker->has_lost_shards = worker->id == owner;
  // Whose clocks count changes with the group: the owner is told.
  CHECK((co_await world->put("/v1/groups/g", R"({"workers":["w1","w0"]})")).status == 200);
  CHECK(co_await world->until(path, "/endpoints/0/worker", heir));
  CHECK(co_await world->until(path, "/endpoints/1/worker", owner));
  CHECK(co_await world->until(path, "/state", "ready"));
}

awaitable<void> by_the_only_one(World* world) {
  for (auto& worker : world->workers) worker->takes_one_at_a_time = true;
  co_await world->stand();
  CHECK((co_await world->put(path, R"({"group":"g","shape":[4],"staleness":0})")).status == 201);
  for (auto& worker : world->workers) worker->has_lost_shards = true;
  CHECK((co_await world->put("/v1/groups/g", R"({"workers":["w1","w0"]})")).status == 200);
  CHECK(co_await world->until(path, "/state", "lost"));
}

std::string loss_of(std::string const& worker) {
  return path + "?lost_shard=0&suspect=" + worker + "&incarnation=0000000000000001";
}

// Of three.
FakeWorker& other_than(World* world, std::string const& one, std::string const& another) {
  return **std::ranges::find_if(world->workers,
                                [&](auto const& worker) { return worker->id != one && worker->id != another; });
}

FakeWorker& named(World* world, std::string const& worker) { return *world->workers[worker == "w0" ? 0 : 1]; }

// Its device has failed, and it says so by itself.
awaitable<void> by_an_owner_that_says_so(World* world) {
  for (auto& worker : world->workers) worker->takes_one_at_a_time = true;
  co_await world->stand();
  auto const made = co_await world->put(path, R"({"group":"g","shape":[4],"replicas":2,"device":"cuda"})");
  auto const owner = made.text("/endpoints/0/worker"), heir = made.text("/endpoints/1/worker");
  CHECK(made.text("/device") == "cuda");
  CHECK(named(world, heir).shards.begin()->second.parameter.device == "cuda");
  named(world, owner).has_lost_shards = true;
  co_await world->get(loss_of(owner));
  CHECK(co_await world->until(path, "/endpoints/0/worker", heir));
}

// Its owner, which waits for it, goes on, and fills another one: here the same, with another device.
awaitable<void> by_a_backup_that_says_so(World* world) {
  for (auto& worker : world->workers) worker->takes_one_at_a_time = true;
  co_await world->stand();
  auto const made = co_await world->put(path, R"({"group":"g","shape":[4],"replicas":2,"device":"cuda"})");
  auto const& owner = named(world, made.text("/endpoints/0/worker"));
  co_await world->get(loss_of(made.text("/endpoints/1/worker")));
  for (std::size_t calls = 0; calls < 100'000 && owner.shards.begin()->second.epoch < 3; ++calls)
    co_await world->get(path);
  CHECK(owner.shards.begin()->second.backups.size() == 1);
  CHECK(co_await world->until(path, "/state", "ready"));
}

// Its only GPU is lost, so it cannot have the backup again; the third worker can.
awaitable<void> by_a_backup_without_a_gpu(World* world) {
  for (auto& worker : world->workers) worker->takes_one_at_a_time = true;
  co_await world->stand();
  auto const made = co_await world->put(path, R"({"group":"g","shape":[4],"shards":1,"replicas":2,"device":"cuda"})");
  auto const owner = made.text("/endpoints/0/worker"), backup = made.text("/endpoints/1/worker");
  auto const& other = other_than(world, owner, backup);
  other_than(world, owner, other.id).has_no_gpu = true;
  co_await world->get(loss_of(backup));
  CHECK(co_await world->until(path, "/endpoints/1/worker", other.id));
  CHECK(co_await world->until(path, "/state", "ready"));
}

// Nobody else can have it: the owner goes on alone, and takes the first that can.
awaitable<void> by_all_gpus_but_the_owners(World* world) {
  for (auto& worker : world->workers) worker->takes_one_at_a_time = true;
  co_await world->stand();
  auto const made = co_await world->put(path, R"({"group":"g","shape":[4],"shards":1,"replicas":2,"device":"cuda"})");
  auto const owner = made.text("/endpoints/0/worker"), backup = made.text("/endpoints/1/worker");
  auto& last = other_than(world, owner, backup);
  for (auto& worker : world->workers) worker->has_no_gpu = worker->id != owner;
  co_await world->get(loss_of(backup));
  CHECK(co_await world->until(path, "/state", "degraded"));
  for (auto& worker : world->workers)
    for (std::size_t calls = 0; calls < 100'000 && worker->id == owner; ++calls) {
      if (worker->shards.begin()->second.backups.empty()) break;
      co_await world->get(path);
    }
  last.has_no_gpu = false;
  CHECK(co_await world->until(path, "/endpoints/1/worker", last.id));
  CHECK(co_await world->until(path, "/state", "ready"));
}

void tell(awaitable<void> (*story)(World*), std::size_t workers = 2) {
  CoordinatorOptions options;
  options.directory.second_thoughts = std::chrono::milliseconds(20);
  World world(workers, options);
  world.tell(story(&world));
}

}  // namespace

TEST_CASE("an owner of many shards is lost: its backup hears of them in a few requests") { tell(together); }
TEST_CASE("an owner that does not have its shard any more is followed by its backup") { tell(by_an_owner_without_it); }
TEST_CASE("an owner that says that its shard has gone is followed by its backup") { tell(by_an_owner_that_says_so); }
TEST_CASE("a backup that says that its shard has gone is waited for no longer") { tell(by_a_backup_that_says_so); }
TEST_CASE("a backup whose worker has lost its GPU is made at another one") { tell(by_a_backup_without_a_gpu, 3); }
TEST_CASE("a shard whose backup nobody can have goes on without one until somebody can") {
  tell(by_all_gpus_but_the_owners, 3);
}
TEST_CASE("a shard that its only owner does not have any more is lost") { tell(by_the_only_one); }
TEST_CASE("a worker of an earlier release, which does not take many shards at once, is told of each") {
  tell(one_by_one);
}
