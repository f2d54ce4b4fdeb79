// Backups that are being filled, and events before they are complete.
#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <string>

#include "server/coordinator/testing/fake_worker.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using boost::asio::awaitable;
using Clock = std::chrono::steady_clock;

namespace {

std::string const path = "/v1/parameters/w";
std::string const replicated = R"({"group":"g","shape":[4],"replicas":2})";

std::string loss_of(std::string const& worker) {
  return path + "?lost_shard=0&suspect=" + worker + "&incarnation=0000000000000001";
}

struct Filling {
  FakeWorker& owner;
  FakeWorker& backup;
  [[nodiscard]] api::ShardAssignment const& owned() const { return owner.shards.begin()->second; }
  [[nodiscard]] api::ShardAssignment const& backed_up() const { return backup.shards.begin()->second; }
};

using Done = std::function<bool()>;

awaitable<bool> eventually(World* world, Done is_done) {
  auto const end = Clock::now() + std::chrono::seconds(5);
  while (!is_done() && Clock::now() < end) co_await world->get(path);
  co_return is_done();
}

// The first backup has been lost, and the same worker is being filled again, but its owner makes no progress.
awaitable<Filling> begin(World* world) {
  co_await world->stand();
  auto const made = co_await world->put(path, replicated);
  auto const is_first = made.text("/endpoints/0/worker") == "w0";
  Filling filling{*world->workers[is_first ? 0 : 1], *world->workers[is_first ? 1 : 0]};
  filling.owner.fills_nobody = true;
  co_await world->get(loss_of(filling.backup.id));
  Done const is_told = [&] { return filling.owned().epoch > 2 && filling.owned().backups.size() == 1; };
  CHECK(co_await eventually(world, is_told));
  CHECK((co_await world->get(path)).text("/state") == "degraded");
  co_return filling;
}

// The owner has been told to continue without this backup, so no worker fills it any more.
awaitable<void> lost_again(World* world) {
  auto const filling = co_await begin(world);
  filling.owner.fills_nobody = false;
  co_await world->get(loss_of(filling.backup.id));
  CHECK(co_await world->until(path, "/state", "ready"));
}

// The owner hears of an epoch, and its backup does not: the backup takes no pushes of a later epoch than its own.
awaitable<void> that_has_not_heard(World* world) {
  auto const filling = co_await begin(world);
  auto const before = filling.owned().epoch;
  filling.backup.deaf_to_shards = true;
  ++filling.owner.term;
  CHECK((co_await world->join_as(filling.owner)).status == 200);
  Done const is_confirmed = [&] { return filling.owned().epoch > before; };
  CHECK(co_await eventually(world, is_confirmed));
  // The assignment of the backup times out; then the backup hears again.
  Done const is_told_again = [&] { return filling.owned().epoch > before + 1; };
  CHECK(co_await eventually(world, is_told_again));
  filling.backup.deaf_to_shards = false;
  filling.backup.hear();
  Done const has_heard = [&] { return filling.owned().epoch == filling.backed_up().epoch; };
  CHECK(co_await eventually(world, has_heard));
  filling.owner.fills_nobody = false;
  CHECK(co_await world->until(path, "/state", "ready"));
  CHECK(filling.owned().epoch == filling.backed_up().epoch);
}

// The order to drop a copy overtakes the one to take it.
awaitable<void> of_a_deleted_parameter(World* world) {
  co_await world->stand();
  auto const made = co_await world->put(path, replicated);
  auto const lost = made.text("/endpoints/1/worker");
  FakeWorker* newcomer = nullptr;
  for (auto const& worker : world->workers) {
    if (worker->id == lost) co_await worker->die();
    if (worker->shards.empty()) newcomer = worker.get();
  }
  newcomer->is_slow_with_shards = true;
  co_await world->get(path + "?suspect=" + lost + "&incarnation=0000000000000001");
  CHECK(co_await world->until(path, "/endpoints/1/worker", newcomer->id));
  CHECK((co_await world->call(http::Method::delete_, path)).status == 204);
  Done const was_asked_to_drop = [&] { return newcomer->drops == 1; };
  CHECK(co_await eventually(world, was_asked_to_drop));
  newcomer->is_slow_with_shards = false;
  newcomer->hear();
  Done const has_dropped = [&] { return newcomer->drops == 2 && newcomer->shards.empty(); };
  CHECK(co_await eventually(world, has_dropped));
}

void tell(awaitable<void> (*story)(World*), std::size_t workers = 2, int assignment_ms = 300) {
  CoordinatorOptions options;
  options.directory.repetition = std::chrono::milliseconds(10);
  options.directory.assignment = std::chrono::milliseconds(assignment_ms);
  World world(workers, options);
  world.tell(story(&world));
}

}  // namespace

TEST_CASE("a backup that is lost while it is filled is replaced by another one") { tell(lost_again); }
TEST_CASE("a backup that is being filled and did not hear of its owner's epoch is told again") {
  tell(that_has_not_heard);
}
TEST_CASE("a copy that a worker takes after it was told to drop it, because its parameter was deleted, is dropped") {
  tell(of_a_deleted_parameter, 3, 5000);
}
