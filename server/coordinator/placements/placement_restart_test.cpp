// Parameters after a restart of the coordinator: placements are known, and unfinished work is finished.
#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>

#include "server/coordinator/journal/journal_file.hpp"
#include "server/coordinator/journal/journal_state.hpp"
#include "server/coordinator/testing/fake_worker.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using boost::asio::awaitable;
using chorus::testing::ScratchDirectory;
using http::Method;

namespace {

constexpr char const* path = "/v1/parameters/w";
constexpr char const* replicated = R"({"group":"g","shape":[4],"replicas":2})";
std::pair<std::string, std::uint32_t> const first_shard{"w", 0};

FakeWorker& holder(World& world, std::string const& id) {
  for (auto& worker : world.workers)
    if (worker->id == id) return *worker;
  throw std::runtime_error("nobody is called " + id);
}

// Changes a row in the journal of a coordinator that was killed.
template <class Change>
void with_shard(std::string const& journal, Change const& change) {
  auto const file = JournalFile::open(journal).value();
  auto state = parse_rows(file->read().value()).value();
  change(state.shards.at(0));
  std::vector<Row> const rows{row_of(state.shards.at(0))};
  CHECK(file->write(rows).has_value());
}

awaitable<void> everything_is_there(World* world) {
  co_await world->stand();
  auto const made = co_await world->put(path, replicated);
  CHECK(made.status == 201);
  co_await world->restart();
  CHECK((co_await world->get(path)).json == made.json);
  CHECK((co_await world->put(path, replicated)).status == 200);
  CHECK((co_await world->put(path, R"({"group":"g","shape":[5]})")).code() == "already_exists");
  for (auto const& worker : world->workers) CHECK(worker->shards.at(first_shard).epoch == 1);
  CHECK((co_await world->call(Method::delete_, path)).status == 204);
  co_await world->restart();
  CHECK((co_await world->get(path)).code() == "unknown_parameter");
  // No epoch is given twice: a tag of the former parameter does not fit the new one.
  CHECK((co_await world->put(path, replicated)).text("/epoch") == "2");
}

awaitable<void> a_takeover_that_was_not_noted(World* world) {
  co_await world->stand();
  auto const made = co_await world->put(path, replicated);
  auto const owner = made.text("/endpoints/0/worker"), heir = made.text("/endpoints/1/worker");
  co_await holder(*world, owner).die();
  co_await world->restart_after([&] {
    auto& shard = holder(*world, heir).shards.at(first_shard);
    shard.role = "owner";
    shard.epoch = 2;
    with_shard(world->journal(), [](JournalShard& kept) { kept.epoch = 2; });
  });
  CHECK(co_await world->until(path, "/endpoints/0/worker", heir));
  CHECK((co_await world->get(path)).text("/endpoints/0/epoch") == "2");
}

awaitable<void> an_owner_of_former_days(World* world) {
  co_await world->stand();
  auto const made = co_await world->put(path, replicated);
  auto& before = holder(*world, made.text("/endpoints/0/worker"));
  auto& heir = holder(*world, made.text("/endpoints/1/worker"));
  // The heir does not report its shards, and the former owner still claims to be the owner.
  co_await world->restart_after([&] {
    with_shard(world->journal(), [](JournalShard& kept) {
      std::swap(kept.owner, kept.backup);
      kept.backup.reset();
      kept.epoch = 7;
    });
    heir.deaf_to_shards = true;
  });
  CHECK(co_await world->until(path, "/endpoints/0/worker", heir.id));
  heir.deaf_to_shards = false;
  heir.shards.at(first_shard).role = "owner";
  CHECK(co_await world->until(path, "/state", "ready"));
  CHECK((co_await world->get(path)).text("/endpoints/0/worker") == heir.id);
  CHECK(before.shards.at(first_shard).role == "backup");
  CHECK(before.shards.at(first_shard).epoch > 7);
}

awaitable<void> what_nobody_was_told(World* world) {
  co_await world->stand();
  auto const made = co_await world->put(path, R"({"group":"g","shape":[4]})");
  auto& owner = holder(*world, made.text("/endpoints/0/worker"));
  co_await world->restart_after([&] { with_shard(world->journal(), [](JournalShard& kept) { kept.epoch = 5; }); });
  CHECK(co_await world->until(path, "/endpoints/0/epoch", "6"));
  while (owner.shards.at(first_shard).epoch != 6) co_await world->get(path);
  CHECK(owner.shards.at(first_shard).role == "owner");
}

awaitable<void> one_that_is_being_made(World* world) {
  co_await world->stand();
  auto const made = co_await world->put(path, replicated);
  co_await world->restart_after([&] {
    auto const file = JournalFile::open(world->journal()).value();
    auto state = parse_rows(file->read().value()).value();
    state.parameters.at(0).established = false;
    CHECK(file->write(std::vector<Row>{row_of(state.parameters.at(0))}).has_value());
    holder(*world, made.text("/endpoints/0/worker")).shards.clear();
  });
  CHECK(co_await world->until(path, "/state", "ready"));
  CHECK((co_await world->get(path)).json == made.json);
  CHECK(holder(*world, made.text("/endpoints/0/worker")).shards.at(first_shard).fresh);
}

awaitable<void> an_orphan(World* world) {
  co_await world->stand();
  CHECK((co_await world->put(path, replicated)).status == 201);
  auto const orphan = world->workers[0]->shards.at(first_shard);
  CHECK((co_await world->call(Method::delete_, path)).status == 204);
  co_await world->restart_after([&] {
    world->workers[0]->shards[first_shard] = orphan;
    world->workers[0]->shards[{"of-another-coordinator", 0}] = orphan;
  });
  while (world->workers[0]->shards.contains(first_shard)) co_await world->get(path);
  CHECK(world->workers[0]->shards.contains({"of-another-coordinator", 0}));
}

// Meanwhile there is a newer checkpoint.
awaitable<void> one_from_a_checkpoint(World* world) {
  co_await world->stand();
  auto const request = R"({"group":"g","shape":[4],"shards":2,"checkpoint":{"name":"nightly"}})";
  CHECK((co_await world->put(path, request)).status == 201);
  co_await world->restart_after([&] {
    auto const file = JournalFile::open(world->journal()).value();
    auto state = parse_rows(file->read().value()).value();
    state.parameters.at(0).established = false;
    CHECK(file->write(std::vector<Row>{row_of(state.parameters.at(0))}).has_value());
    for (auto& worker : world->workers) {
      worker->newest_checkpoint = 2;
      worker->shards.clear();
    }
  });
  CHECK(co_await world->until(path, "/state", "ready"));
  std::size_t shards = 0;
  for (auto const& worker : world->workers)
    for (auto const& [key, assignment] : worker->shards) {
      ++shards;
      CHECK(assignment.checkpoint->number == 1);
    }
  CHECK(shards == 2);
}

// Ends with "", if the coordinator breaks the connection.
awaitable<void> ask_to_hand_over(World* world, std::string worker, std::optional<std::string>* code) {
  try {
    auto const said =
        co_await world->post("/v1/workers/" + worker + "/handover?incarnation=0000000000000001&wait=8s", "");
    *code = said.status == 200 ? "handed over" : said.code();
  } catch (std::runtime_error const&) { *code = ""; }
}

// The coordinator stops while the shard is being moved.
awaitable<void> a_worker_that_wants_to_leave(World* world) {
  co_await world->stand();
  auto& owner = holder(*world, (co_await world->put(path, R"({"group":"g","shape":[4]})")).text("/endpoints/0/worker"));
  auto const& other = *world->workers[owner.id == "w0" ? 1 : 0];
  owner.fills_nobody = true;
  std::optional<std::string> code;
  boost::asio::co_spawn(world->io, ask_to_hand_over(world, owner.id, &code), [](std::exception_ptr) {});
  while (!other.shards.contains(first_shard)) co_await world->get(path);
  co_await world->restart();
  while (!code) co_await world->get(path);
  CHECK((*code == "unavailable" || code->empty()));  // after both the worker asks again
  CHECK((co_await world->get(path)).text("/endpoints/0/worker") == owner.id);
}

void tell(awaitable<void> (*story)(World*)) {
  ScratchDirectory const here;
  auto options = impatient_options();
  options.directory.recovery = std::chrono::milliseconds(300);
  options.directory.repetition = std::chrono::milliseconds(10);
  World world(2, options, here / "journal");
  world.tell(story(&world));
}

}  // namespace

TEST_CASE("placements survive a restart, no worker is told anything, and epochs of deleted ones are not given again") {
  tell(everything_is_there);
}
TEST_CASE("a backup that had taken over when the coordinator died is the owner") {
  tell(a_takeover_that_was_not_noted);
}
TEST_CASE("a former owner does not become the owner by claiming so") { tell(an_owner_of_former_days); }
TEST_CASE("a placement that was drawn but not sent is sent after a restart") { tell(what_nobody_was_told); }
TEST_CASE("the creation of a parameter is finished after a restart") { tell(one_that_is_being_made); }
TEST_CASE("a shard of a deleted parameter is dropped, and one of another coordinator is left alone") {
  tell(an_orphan);
}
TEST_CASE("the creation of a parameter from the newest checkpoint continues with the checkpoint with which it began") {
  tell(one_from_a_checkpoint);
}
TEST_CASE("a worker that wants to leave is told by a coordinator that stops to ask the next one") {
  tell(a_worker_that_wants_to_leave);
}
