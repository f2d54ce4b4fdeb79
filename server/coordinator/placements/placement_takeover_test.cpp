// Shards whose owner dies or loses them. Backups get many of their assignments at a time.
#include <doctest/doctest.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <numeric>
#include <string>

#include "server/coordinator/testing/fake_worker.hpp"

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
  // A client that misses the worker reports it.
  co_await world->get(suspicion);
  CHECK(co_await world->until(path, "/state", "degraded"));
  CHECK(co_await world->until(path, "/endpoints/599/worker", "w0"));
  // The directory changes before the worker is told; each call lets the coordinator run.
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

// Release 0.1 does not know the uid of a parameter, and refuses orders with unknown fields.
awaitable<void> beside_a_newer_release(World* world) {
  world->workers[0]->version = "0.1.0";
  co_await world->stand();
  CHECK((co_await world->put(path, R"({"group":"g","shape":[4],"shards":2,"replicas":2})")).status == 201);
  for (auto const& worker : world->workers) {
    CHECK(worker->shards.size() == 2);
    for (auto const& [key, assignment] : worker->shards)
      CHECK(assignment.parameter.uid.has_value() == (worker->version != "0.1.0"));
  }
}

awaitable<void> one_by_one(World* world) {
  world->workers[0]->takes_one_at_a_time = true;
  co_await make_and_kill(world);
  CHECK(world->workers[0]->orders_at_a_time.empty());
}

// After an error of its own the owner is alive, and does not have its shard.
awaitable<void> by_an_owner_without_it(World* world) {
  for (auto& worker : world->workers) worker->takes_one_at_a_time = true;
  co_await world->stand();
  auto const made = co_await world->put(path, R"({"group":"g","shape":[4],"shards":1,"replicas":2,"staleness":0})");
  auto const owner = made.text("/endpoints/0/worker"), heir = made.text("/endpoints/1/worker");
  for (auto& worker : world->workers) worker->has_lost_shards = worker->id == owner;
  // The set of clients changes with the group, so the owner is told.
  CHECK((co_await world->put("/v1/groups/g", R"({"workers":[")" + owner + R"(",")" + heir + "\"]}")).status == 200);
  CHECK(co_await world->until(path, "/endpoints/0/worker", heir));
  CHECK(co_await world->until(path, "/endpoints/1/worker", owner));
  CHECK(co_await world->until(path, "/state", "ready"));
}

awaitable<void> by_the_only_one(World* world) {
  for (auto& worker : world->workers) worker->takes_one_at_a_time = true;
  co_await world->stand();
  auto const made = co_await world->put(path, R"({"group":"g","shape":[4],"staleness":0})");
  CHECK(made.status == 201);
  for (auto& worker : world->workers) worker->has_lost_shards = true;
  auto const alone = R"({"workers":[")" + made.text("/endpoints/0/worker") + "\"]}";
  CHECK((co_await world->put("/v1/groups/g", alone)).status == 200);
  CHECK(co_await world->until(path, "/state", "lost"));
}

std::string loss_of(std::string const& worker) {
  return path + "?lost_shard=0&suspect=" + worker + "&incarnation=0000000000000001";
}

// Returns the third of three workers.
FakeWorker& other_than(World* world, std::string const& one, std::string const& another) {
  return **std::ranges::find_if(world->workers,
                                [&](auto const& worker) { return worker->id != one && worker->id != another; });
}

FakeWorker& named(World* world, std::string const& id) {
  return **std::ranges::find_if(world->workers, [&](auto const& worker) { return worker->id == id; });
}

awaitable<void> make_it_again(World* world, World::Said* said) {
  *said = co_await world->put(path, R"({"group":"g","shape":[4]})");
}

// The parameter is deleted while its owner cannot be reached and has a lease: no other worker may have this parameter
// meanwhile.
awaitable<void> after_its_former_owner(World* world) {
  for (auto& worker : world->workers) worker->takes_one_at_a_time = true;
  co_await world->stand();
  auto const made = co_await world->put(path, R"({"group":"g","shape":[4]})");
  auto const owner = made.text("/endpoints/0/worker");
  auto& former = named(world, owner);
  former.deaf_to_shards = true;
  CHECK((co_await world->call(http::Method::delete_, path)).status == 204);
  auto const rest = R"({"workers":[")" + std::string(owner == "w0" ? "w1" : "w0") + R"("]})";
  CHECK((co_await world->put("/v1/groups/g", rest)).status == 200);
  World::Said again;
  boost::asio::co_spawn(world->io, make_it_again(world, &again), [](std::exception_ptr) {});
  for (int looks = 0; looks < 50; ++looks) CHECK((co_await world->get(path)).status == 404);
  CHECK(again.status == 0);
  former.deaf_to_shards = false;
  former.hear();
  CHECK(co_await world->until(path, "/state", "ready"));
  CHECK(former.shards.empty());
  while (again.status == 0) co_await world->get(path);
  CHECK(again.status == 201);
}

// The owner's device has failed, and the owner reports it.
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

// The owner has taken an order and loses its shard while the backup is told.
awaitable<void> by_an_owner_that_says_so_during_an_order(World* world) {
  for (auto& worker : world->workers) worker->takes_one_at_a_time = true;
  co_await world->stand();
  auto const made = co_await world->put(path, R"({"group":"g","shape":[4],"shards":1,"replicas":2,"staleness":0})");
  auto& owner = named(world, made.text("/endpoints/0/worker"));
  auto& heir = named(world, made.text("/endpoints/1/worker"));
  heir.takes_shards_silently = true;
  // The set of clients changes with the group.
  CHECK((co_await world->put("/v1/groups/g", R"({"workers":[")" + owner.id + R"(",")" + heir.id + "\"]}")).status ==
        200);
  while (heir.shards.begin()->second.epoch == 1) co_await world->get(path);
  owner.has_lost_shards = true;
  co_await world->get(loss_of(owner.id));
  heir.takes_shards_silently = false;
  heir.hear();
  CHECK(co_await world->until(path, "/endpoints/0/worker", heir.id));
}

// The owner, which waits for the backup, continues and fills another one: here the same worker on another device.
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

// The worker of the backup has lost its only GPU and cannot have the backup again; the third worker can.
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

// No other worker can have the backup: the owner continues alone, and takes the first worker that can.
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

TEST_CASE("an owner of many shards is lost: its backup is told in a few requests") { tell(together); }
TEST_CASE("an owner that does not have its shard any more is replaced by its backup") {
  tell(by_an_owner_without_it, 3);
}
TEST_CASE("an owner that reports the loss of its shard is replaced by its backup") { tell(by_an_owner_that_says_so); }
TEST_CASE("a backup that reports the loss of its shard is no longer waited for") { tell(by_a_backup_that_says_so); }
TEST_CASE("a backup whose worker has lost its GPU is made on another worker") { tell(by_a_backup_without_a_gpu, 3); }
TEST_CASE("a shard whose backup no worker can have continues without one until a worker can") {
  tell(by_all_gpus_but_the_owners, 3);
}
TEST_CASE("a deleted parameter is made again when its former owner no longer serves it") {
  tell(after_its_former_owner);
}
TEST_CASE("a shard that its only owner does not have any more is lost") { tell(by_the_only_one); }
TEST_CASE("a worker of an earlier release, which does not take many shards at once, is told of each") {
  tell(one_by_one);
}
TEST_CASE("a worker of release 0.1 gets orders without the uid of a parameter, which it would refuse") {
  tell(beside_a_newer_release);
}
TEST_CASE("an owner that reports the loss of its shard while an order is under way is replaced by its backup") {
  tell(by_an_owner_that_says_so_during_an_order, 3);
}
