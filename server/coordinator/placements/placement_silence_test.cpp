// Owners and backups that are silent for longer than their lease, and come back with their data or not. A shard of
// which no other worker has a copy waits; it is lost only when the loss is proved, or when it is given up.
#include <doctest/doctest.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <set>

#include "http/json/json.hpp"
#include "server/coordinator/journal/journal_file.hpp"
#include "server/coordinator/journal/journal_state.hpp"
#include "server/coordinator/testing/fake_worker.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using boost::asio::awaitable;
using chorus::testing::ScratchDirectory;
using http::Method;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using Clock = std::chrono::steady_clock;

namespace {

constexpr char const* path = "/v1/parameters/w";
constexpr char const* alone = R"({"group":"g","shape":[4]})";
constexpr char const* replicated = R"({"group":"g","shape":[4],"replicas":2})";
std::pair<std::string, std::uint32_t> const first_shard{"w", 0};
constexpr auto lease = 600ms;

// Workers that renew their leases, and join again when their leases are over; silenced workers do neither.
class Fleet {
 public:
  explicit Fleet(World* world) : world_(world) {}

  awaitable<void> stand() {
    co_await world_->stand();
    for (auto& worker : world_->workers)
      boost::asio::co_spawn(world_->io, renew_on(worker.get()), [](std::exception_ptr) {});
  }
  void silence(FakeWorker& worker) { silent_.insert(worker.id); }
  void let_go_on(FakeWorker& worker) { silent_.erase(worker.id); }
  void end() { is_over_ = true; }

  FakeWorker& called(std::string const& id) {
    return **std::ranges::find_if(world_->workers, [&](auto const& worker) { return worker->id == id; });
  }
  awaitable<bool> until_lost(FakeWorker& worker) {
    co_return co_await world_->until("/v1/workers/" + worker.id, "/state", "lost");
  }
  // Waits until this worker, which had to join again, has been told its role for the shard.
  awaitable<bool> until_told(FakeWorker& worker, std::string role) {
    for (auto const until = Clock::now() + 10s; Clock::now() < until;) {
      auto const found = worker.shards.find(first_shard);
      if (found != worker.shards.end() && found->second.role == role && worker.term > 0 &&
          found->second.term == worker.term)
        co_return true;
      co_await world_->get(path);
    }
    co_return false;
  }
  awaitable<bool> until_dropped(FakeWorker& worker) {
    for (auto const until = Clock::now() + 10s; Clock::now() < until; co_await world_->get(path))
      if (!worker.shards.contains(first_shard)) co_return true;
    co_return false;
  }

 private:
  awaitable<void> renew(FakeWorker* worker) {
    auto const body = R"({"incarnation":")" + api::to_hex(worker->incarnation) + "\"}";
    auto const said = co_await world_->put("/v1/workers/" + worker->id + "/lease", body);
    if (said.status != 404) co_return;
    ++worker->term;
    co_await world_->join_as(*worker);
  }

  awaitable<void> renew_on(FakeWorker* worker) {
    boost::asio::steady_timer timer(world_->io);
    while (!is_over_) {
      try {
        if (!silent_.contains(worker->id)) co_await renew(worker);
      } catch (std::runtime_error const&) {}  // no coordinator at the moment
      timer.expires_after(lease / 6);
      co_await timer.async_wait(boost::asio::use_awaitable);
    }
  }

  World* const world_;
  std::set<std::string> silent_;
  bool is_over_ = false;
};

struct Placed {
  FakeWorker& owner;
  FakeWorker* backup;
};

Placed placed(Fleet& fleet, World::Said const& made) {
  auto const backup = made.text("/endpoints/1/worker");
  return {fleet.called(made.text("/endpoints/0/worker")), backup.empty() ? nullptr : &fleet.called(backup)};
}

using Story = awaitable<void> (*)(World*, Fleet*);

awaitable<void> live(Story story, World* world, Fleet* fleet) {
  std::exception_ptr failure;
  try {
    co_await fleet->stand();
    co_await story(world, fleet);
  } catch (...) { failure = std::current_exception(); }
  fleet->end();
  if (failure) std::rethrow_exception(failure);
}

void tell(Story story, std::size_t workers = 2) {
  ScratchDirectory const here;
  auto options = impatient_options();
  options.lease = lease;
  options.directory.recovery = 300ms;
  options.directory.repetition = 10ms;
  options.directory.assignment = 400ms;
  World world(workers, options, here / "journal");
  Fleet fleet(&world);
  world.tell(live(story, &world, &fleet));
}

awaitable<void> the_only_owner(World* world, Fleet* fleet) {
  auto const made = co_await world->put(path, alone);
  auto& owner = placed(*fleet, made).owner;
  fleet->silence(owner);
  CHECK(co_await world->until(path, "/state", "unavailable"));
  auto const waiting = co_await world->get(path);
  CHECK(waiting.text("/why").find("'" + owner.id + "'") != std::string::npos);
  CHECK(waiting.text("/endpoints/0/worker") == owner.id);
  CHECK(waiting.text("/endpoints/0/state") == "unavailable");
  CHECK((co_await world->put(path, alone)).text("/state") == "unavailable");
  CHECK((co_await world->post("/v1/checkpoints", R"({"name":"n"})")).code() == "unavailable");
  fleet->let_go_on(owner);
  CHECK(co_await world->until(path, "/state", "ready"));
  CHECK(co_await fleet->until_told(owner, "owner"));
  CHECK(owner.term == 1);
  CHECK(owner.shards.at(first_shard).epoch > 1);
  CHECK_FALSE(owner.shards.at(first_shard).fresh);
}

awaitable<void> its_backup_first(World* world, Fleet* fleet) {
  auto const made = co_await world->put(path, replicated);
  auto const [owner, backup] = placed(*fleet, made);
  fleet->silence(owner);
  fleet->silence(*backup);
  auto const waits = co_await world->until(path, "/state", "unavailable");
  auto const seen = co_await world->get(path);
  CHECK_MESSAGE(waits, seen.body, world->log.str());
  CHECK((co_await world->get(path)).text("/why").find("'" + backup->id + "'") != std::string::npos);
  fleet->let_go_on(*backup);
  CHECK(co_await fleet->until_told(*backup, "owner"));
  fleet->let_go_on(owner);
  CHECK(co_await fleet->until_told(owner, "backup"));
  CHECK(co_await world->until(path, "/state", "ready"));
  CHECK((co_await world->get(path)).text("/endpoints/0/worker") == backup->id);
  CHECK_FALSE(owner.shards.at(first_shard).continues);  // the new backup is filled from the beginning
}

awaitable<void> its_owner_first(World* world, Fleet* fleet) {
  auto const made = co_await world->put(path, replicated);
  auto const [owner, backup] = placed(*fleet, made);
  fleet->silence(owner);
  fleet->silence(*backup);
  CHECK(co_await world->until(path, "/state", "unavailable"));
  fleet->let_go_on(owner);
  CHECK(co_await fleet->until_told(owner, "owner"));
  CHECK(owner.shards.at(first_shard).backups.empty());
  fleet->let_go_on(*backup);
  CHECK(co_await fleet->until_told(*backup, "backup"));
  CHECK(co_await world->until(path, "/state", "ready"));
  CHECK((co_await world->get(path)).text("/endpoints/0/worker") == owner.id);
  CHECK_FALSE(backup->shards.at(first_shard).continues);
}

awaitable<void> another_life_of_the_coordinator(World* world, Fleet* fleet) {
  auto const made = co_await world->put(path, replicated);
  auto const [owner, backup] = placed(*fleet, made);
  fleet->silence(owner);
  fleet->silence(*backup);
  CHECK(co_await world->until(path, "/state", "unavailable"));
  co_await world->restart();
  CHECK((co_await world->get(path)).text("/state") == "unavailable");
  fleet->let_go_on(*backup);
  fleet->let_go_on(owner);
  CHECK(co_await world->until(path, "/state", "ready"));
}

// The coordinator died before it had told the owner.
awaitable<void> an_owner_that_was_not_told(World* world, Fleet* fleet) {
  auto const made = co_await world->put(path, alone);
  auto& owner = placed(*fleet, made).owner;
  owner.is_unconfirmed = true;
  co_await world->restart();
  for (auto const until = Clock::now() + 5s; Clock::now() < until && owner.shards.at(first_shard).epoch == 1;)
    co_await world->get(path);
  CHECK(owner.shards.at(first_shard).epoch > 1);
  CHECK(co_await world->until(path, "/state", "ready"));
}

// Another coordinator told the owner that its lease is over; this coordinator has not missed it.
awaitable<void> an_owner_that_joins_in_a_new_term(World* world, Fleet* fleet) {
  auto const made = co_await world->put(path, alone);
  auto& owner = placed(*fleet, made).owner;
  ++owner.term;
  CHECK((co_await world->join_as(owner)).status == 200);
  CHECK(co_await fleet->until_told(owner, "owner"));
}

awaitable<void> one_that_has_ended(World* world, Fleet* fleet) {
  auto const made = co_await world->put(path, alone);
  auto& owner = placed(*fleet, made).owner;
  fleet->silence(owner);
  CHECK(co_await world->until(path, "/state", "unavailable"));
  // The worker is started again.
  FakeWorker successor(world->io.get_executor(), owner.id, 2);
  CHECK((co_await world->join_as(successor)).status == 200);
  CHECK(co_await world->until(path, "/state", "lost"));
  CHECK((co_await world->get(path)).json.at("endpoints").as_array().empty());
  co_await world->restart();
  CHECK((co_await world->get(path)).text("/state") == "lost");
  CHECK((co_await world->put(path, alone)).text("/state") == "lost");
  auto const again = co_await world->put(path, R"({"group":"g","shape":[5],"recreate":true})");
  CHECK(again.status == 201);
  CHECK(again.text("/state") == "ready");
  CHECK(again.json.at("epoch").as_int64() > 1);
  auto& next = fleet->called(again.text("/endpoints/0/worker"));
  CHECK(next.shards.at(first_shard).fresh);
  // A working parameter is not made again.
  auto const stays = co_await world->put(path, R"({"group":"g","shape":[5],"recreate":true})");
  CHECK(stays.status == 200);
  CHECK(stays.json == again.json);
  co_await successor.die();
}

awaitable<void> one_that_is_given_up(World* world, Fleet* fleet) {
  auto const made = co_await world->put(path, alone);
  auto& owner = placed(*fleet, made).owner;
  CHECK((co_await world->post(std::string(path) + "/give-up", "")).text("/state") == "ready");
  fleet->silence(owner);
  CHECK(co_await world->until(path, "/state", "unavailable"));
  CHECK((co_await world->post(std::string(path) + "/give-up", "")).text("/state") == "lost");
  CHECK((co_await world->post("/v1/parameters/v/give-up", "")).code() == "unknown_parameter");
  co_await world->restart();
  // A shard that was given up stays lost, even if its owner comes back.
  fleet->let_go_on(owner);
  CHECK(co_await world->until("/v1/workers/" + owner.id, "/state", "ready"));
  CHECK((co_await world->get(path)).text("/state") == "lost");
  CHECK((co_await world->put(path, R"({"group":"g","shape":[4],"recreate":true})")).status == 201);
  for (auto& worker : world->workers) {
    auto const found = worker->shards.find(first_shard);
    CHECK((found == worker->shards.end() || found->second.fresh));
  }
}

awaitable<void> one_that_is_made_again_while_it_is_silent(World* world, Fleet* fleet) {
  auto const made = co_await world->put(path, alone);
  auto& owner = placed(*fleet, made).owner;
  fleet->silence(owner);
  CHECK(co_await world->until(path, "/state", "unavailable"));
  auto const again = co_await world->put(path, R"({"group":"g","shape":[4],"recreate":true})");
  CHECK(again.status == 201);
  CHECK(again.text("/endpoints/0/worker") != owner.id);
  fleet->let_go_on(owner);
  CHECK(co_await fleet->until_dropped(owner));
  CHECK((co_await world->get(path)).text("/state") == "ready");
}

// The backup has taken over, and its answer is lost: no other worker gets the shard, even if the former owner comes
// back.
awaitable<void> an_heir_that_does_not_answer(World* world, Fleet* fleet) {
  auto const made = co_await world->put(path, replicated);
  auto const [owner, heir] = placed(*fleet, made);
  heir->takes_shards_silently = true;
  fleet->silence(owner);
  for (auto const until = Clock::now() + 5s; Clock::now() < until && heir->shards.at(first_shard).role != "owner";)
    co_await world->get(path);
  REQUIRE(heir->shards.at(first_shard).role == "owner");
  fleet->let_go_on(owner);
  CHECK(co_await world->until("/v1/workers/" + owner.id, "/state", "ready"));
  CHECK((co_await world->get(path)).text("/endpoints/0/worker") == heir->id);
  co_await world->restart();
  CHECK((co_await world->get(path)).text("/endpoints/0/worker") == heir->id);
  heir->takes_shards_silently = false;
  heir->hear();
  CHECK(co_await world->until(path, "/state", "ready"));
  CHECK((co_await world->get(path)).text("/endpoints/0/worker") == heir->id);
  CHECK(owner.shards.at(first_shard).role == "backup");
}

awaitable<void> an_heir_that_refuses(World* world, Fleet* fleet) {
  auto const made = co_await world->put(path, replicated);
  auto const [owner, heir] = placed(*fleet, made);
  heir->takes_one_at_a_time = heir->has_lost_shards = true;
  fleet->silence(owner);
  CHECK(co_await world->until(path, "/state", "unavailable"));
  CHECK((co_await world->get(path)).text("/endpoints/0/worker") == owner.id);
  fleet->let_go_on(owner);
  CHECK(co_await world->until(path, "/state", "ready"));
  CHECK((co_await world->get(path)).text("/endpoints/0/worker") == owner.id);
}

// The backup was told once, then given up, and did not hear that it is to be filled again.
awaitable<void> a_backup_of_former_days(World* world, Fleet* fleet) {
  auto const made = co_await world->put(path, replicated);
  auto const [owner, backup] = placed(*fleet, made);
  co_await world->restart_after([&] {
    auto const journal = JournalFile::open(world->journal()).value();
    auto state = parse_rows(journal->read().value()).value();
    auto& shard = state.shards.at(0);
    shard.epoch = 9;
    shard.backup_complete = false;
    shard.backup_epoch = 9;
    CHECK(journal->write(std::vector<Row>{row_of(shard)}).has_value());
    backup->deaf_to_shards = true;
    owner.deaf_to_shards = true;
  });
  fleet->silence(owner);
  CHECK(co_await fleet->until_lost(owner));
  backup->deaf_to_shards = false;
  backup->hear();
  CHECK(co_await world->until(path, "/state", "unavailable"));
  CHECK(backup->shards.at(first_shard).role == "backup");
  owner.deaf_to_shards = false;
  owner.hear();
  fleet->let_go_on(owner);
  CHECK(co_await world->until(path, "/state", "ready"));
  CHECK((co_await world->get(path)).text("/endpoints/0/worker") == owner.id);
}

awaitable<void> a_copy_that_was_replaced(World* world, Fleet* fleet) {
  auto const made = co_await world->put(path, R"({"group":"g","shape":[4],"shards":1,"replicas":2})");
  auto const [owner, backup] = placed(*fleet, made);
  fleet->silence(*backup);
  CHECK(co_await fleet->until_lost(*backup));
  CHECK(co_await world->until(path, "/state", "ready"));
  CHECK(backup->shards.contains(first_shard));
  fleet->let_go_on(*backup);
  CHECK(co_await fleet->until_dropped(*backup));
  CHECK((co_await world->get(path)).text("/state") == "ready");
}

awaitable<void> most_of_them_at_once(World* world, Fleet* fleet) {
  auto const made = co_await world->put(path, alone);
  auto const begun = Clock::now();
  for (auto const id : {"w0", "w1"}) fleet->silence(fleet->called(id));
  CHECK(co_await fleet->until_lost(fleet->called("w0")));
  CHECK(Clock::now() - begun > 3 * lease);
  CHECK((co_await world->get("/v1/workers/w2")).text("/state") == "ready");
}

}  // namespace

TEST_CASE(
    "the only owner of a shard is silent for longer than its lease: the shard waits for it by name, and goes on") {
  tell(the_only_owner);
}
TEST_CASE("owner and backup are silent at once: the backup that comes first goes on, and the owner follows it") {
  tell(its_backup_first);
}
TEST_CASE("owner and backup are silent at once: the owner that comes first goes on, and the backup is filled again") {
  tell(its_owner_first);
}
TEST_CASE("the next coordinator waits for the same workers") { tell(another_life_of_the_coordinator); }
TEST_CASE("an owner that joined again, and was not told that it owns the shard, is told by the next coordinator") {
  tell(an_owner_that_was_not_told);
}
TEST_CASE("an owner that considers itself lost hears that it owns the shard when it joins") {
  tell(an_owner_that_joins_in_a_new_term);
}
TEST_CASE("a shard that no worker can have any more is lost, and is made again on request") {
  tell(one_that_has_ended);
}
TEST_CASE("a shard that is given up is lost, and stays so when its owner comes back") { tell(one_that_is_given_up); }
TEST_CASE("an owner that comes back after its parameter was made again drops what it had") {
  tell(one_that_is_made_again_while_it_is_silent);
}
TEST_CASE("a backup that has taken over and is not heard stays the owner when the former one comes back") {
  tell(an_heir_that_does_not_answer);
}
TEST_CASE("a backup that refuses to own the shard does not own it: the shard waits for its former owner") {
  tell(an_heir_that_refuses);
}
TEST_CASE("a backup that did not hear that it is to be filled again does not take over with its old data") {
  tell(a_backup_of_former_days);
}
TEST_CASE("a copy that was replaced while its worker was silent is dropped when the worker comes back") {
  tell(a_copy_that_was_replaced, 3);
}
TEST_CASE("most workers of a group are silent at once: none is called lost before four leases have passed") {
  tell(most_of_them_at_once, 3);
}
