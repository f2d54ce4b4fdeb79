// A coordinator that is started again on its journal, with workers that have not noticed.
#include <doctest/doctest.h>

#include <optional>

#include "http/json/json.hpp"
#include "server/coordinator/journal/journal_file.hpp"
#include "server/coordinator/journal/journal_state.hpp"
#include "server/coordinator/testing/fake_worker.hpp"
#include "tests/support/faults/full_disk.hpp"
#include "tests/support/mentions.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using chorus::testing::mentions;
using chorus::testing::ScratchDirectory;
using std::chrono_literals::operator""ms;
using boost::asio::awaitable;
using http::Method;

namespace {

constexpr char const* body = R"({"group":"g","tensor":"x","algorithm":"ring"})";
constexpr char const* same_incarnation = R"({"incarnation":"0000000000000001"})";

CoordinatorOptions impatient() {
  auto options = impatient_options();
  options.execution.admission = 200ms;
  options.execution.reconciliation = 300ms;
  options.journal.retry = 10ms;
  options.journal.look = 10ms;
  return options;
}

http::Fields key(std::string text) {
  http::Fields fields;
  fields.set("Idempotency-Key", std::move(text));
  return fields;
}

awaitable<World::Said> post_with_key(World* world, std::string text) {
  auto fields = key(std::move(text));
  co_return co_await world->call(Method::post, "/v1/collectives?wait=5s", body, std::move(fields));
}

awaitable<void> everything_is_there(World* world) {
  co_await world->stand();
  auto const before = co_await world->put("/v1/collectives/c?wait=5s", body);
  CHECK(before.text("/state") == "succeeded");
  co_await world->restart();
  CHECK((co_await world->put("/v1/workers/w0/lease", same_incarnation)).status == 200);
  CHECK((co_await world->get("/v1/workers/w1")).text("/state") == "ready");
  CHECK((co_await world->get("/v1/groups/g")).text("/epoch") == "1");
  CHECK((co_await world->get("/v1/groups/g")).text("/state") == "ready");
  CHECK((co_await world->get("/v1/collectives/c")).json == before.json);
  CHECK(world->workers[0]->assignments.size() == 1);

  CHECK((co_await world->post("/v1/collectives?wait=5s", body)).text("/state") == "succeeded");
  CHECK(world->workers[0]->runs[1].run > world->workers[0]->runs[0].run);
  auto const list = co_await world->get("/v1/collectives");
  CHECK(list.text("/items/1/id") == "c");
  CHECK((co_await world->put("/v1/groups/g", R"({"size":2})")).text("/epoch") == "2");
}

awaitable<void> a_name_is_run_once(World* world) {
  co_await world->stand();
  auto const first = co_await post_with_key(world, "k");
  CHECK((co_await world->put("/v1/collectives/c?wait=5s", body)).text("/state") == "succeeded");
  co_await world->restart();
  CHECK((co_await post_with_key(world, "k")).text("/id") == first.text("/id"));
  CHECK((co_await world->put("/v1/collectives/c?wait=5s", body)).text("/state") == "succeeded");
  CHECK((co_await world->put("/v1/collectives/c", R"({"group":"g","tensor":"y"})")).code() == "already_exists");
  CHECK(world->workers[0]->runs.size() == 2);
}

awaitable<void> fences_hold(World* world) {
  co_await world->stand();
  FakeWorker again(world->io.get_executor(), "w0", 2);
  CHECK((co_await world->join_as(again)).status == 200);
  co_await world->restart();
  CHECK((co_await world->join(0)).code() == "epoch_fenced");
  CHECK((co_await world->put("/v1/workers/w0/lease", same_incarnation)).code() == "epoch_fenced");
  CHECK((co_await world->get("/v1/groups/g")).text("/state") == "degraded");
  CHECK((co_await world->get("/v1/groups/g")).text("/lost/0") == "w0");
  co_await again.die();
}

awaitable<void> epochs_go_on(World* world) {
  co_await world->stand();
  CHECK((co_await world->call(Method::delete_, "/v1/groups/g")).status == 204);
  co_await world->restart();
  CHECK((co_await world->get("/v1/groups/g")).code() == "unknown_group");
  CHECK((co_await world->put("/v1/groups/g", R"({"size":2})")).text("/epoch") == "3");
}

awaitable<void> refused_for_now(World* world) {
  co_await world->stand();
  auto& tired = *world->workers[1];
  tired.deaf_to_heads = true;
  auto const refused = co_await post_with_key(world, "k");
  CHECK(refused.code() == "worker_unreachable");
  CHECK((co_await world->put("/v1/collectives/c", body)).code() == "worker_unreachable");
  CHECK((co_await world->put("/v1/collectives/d", body)).code() == "worker_unreachable");
  co_await world->restart();
  tired.deaf_to_heads = false;
  CHECK((co_await post_with_key(world, "k")).text("/state") == "succeeded");
  CHECK((co_await post_with_key(world, "k")).text("/state") == "succeeded");
  CHECK((co_await world->put("/v1/collectives/c?wait=5s", body)).text("/state") == "succeeded");
  CHECK(tired.runs.size() == 2);
  CHECK((co_await world->call(Method::delete_, "/v1/groups/g")).status == 204);
  CHECK((co_await world->put("/v1/collectives/d", body)).code() == "unknown_group");
}

// Changes the journal to the state of a coordinator that was killed while collective "c" ran, with these further rows.
void leave_behind(std::string const& path, std::vector<Row> const& more) {
  auto const file = JournalFile::open(path).value();
  auto state = parse_rows(file->read().value()).value();
  auto kept = state.collectives.at(0);
  kept.stage = "launched";
  kept.record.state = "planned";
  kept.record.error.reset();
  kept.group = state.groups.at(0).group;
  for (auto& rank : kept.record.ranks) rank.state = "pending", rank.report.reset();
  std::vector<Row> rows{row_of(kept)};
  rows.insert(rows.end(), more.begin(), more.end());
  CHECK(file->write(rows).has_value());
}

Row decision(World const& world) { return row_of("c", JournalDecision{world.workers[0]->runs[0].run}); }

awaitable<void> a_run_that_is_held(World* world) {
  co_await world->stand();
  for (auto& worker : world->workers) worker->refuse_commits = http::Problem(http::ProblemCode::internal, "not yet");
  CHECK((co_await world->put("/v1/collectives/c?wait=5s", body)).text("/state") == "failed");
  for (auto& worker : world->workers) worker->refuse_commits.reset();
}

awaitable<void> decided(World* world) {
  co_await a_run_that_is_held(world);
  co_await world->restart_after([world] { leave_behind(world->journal(), {decision(*world)}); });
  auto const record = co_await world->get("/v1/collectives/c?wait=5s");
  CHECK(record.text("/state") == "succeeded");
  CHECK(record.text("/ranks/1/report/version") == "2");
  for (auto const& worker : world->workers) CHECK(worker->tensors["x"].version == 2);
}

// What it has committed is not in the record: it refuses to tell.
awaitable<void> one_says_nothing(World* world) {
  co_await a_run_that_is_held(world);
  world->workers[1]->refuse_looks = http::Problem(http::ProblemCode::internal, "no idea");
  co_await world->restart_after([world] { leave_behind(world->journal(), {decision(*world)}); });
  auto const record = co_await world->get("/v1/collectives/c?wait=5s");
  CHECK(record.text("/state") == "succeeded");
  CHECK(record.text("/ranks/1/report/version") == "2");
  for (auto const& worker : world->workers) CHECK(worker->tensors["x"].version == 2);
}

awaitable<void> one_is_busy_at_first(World* world) {
  co_await a_run_that_is_held(world);
  auto& busy = *world->workers[1];
  busy.dropped.push_back(busy.runs[0].run);
  busy.refuse_looks = http::Problem(http::ProblemCode::unavailable, "too many connections");
  co_await world->restart_after([world] { leave_behind(world->journal(), {decision(*world)}); });
  CHECK((co_await world->get("/v1/collectives/c")).text("/state") == "running");
  busy.refuse_looks.reset();
  CHECK((co_await world->get("/v1/collectives/c?wait=5s")).text("/error/code") == "interrupted");
  for (auto const& worker : world->workers) CHECK(worker->tensors["x"].version == 1);
}

constexpr char const* failed_call = R"({"incarnation":"0000000000000001","troubles":[{"group":"e","epoch":1}]})";

awaitable<void> trouble_at_the_end(World* world) {
  co_await world->stand();
  CHECK((co_await world->put("/v1/groups/e", R"({"size":2,"on_failure":"shrink"})")).text("/epoch") == "1");
  world->coordinator->drain();
  for (auto const* worker : {"w0", "w1"})
    CHECK((co_await world->put(std::string("/v1/workers/") + worker + "/lease", failed_call)).status == 200);
  CHECK((co_await world->get("/v1/groups/e")).text("/epoch") == "1");
  co_await world->restart();
  CHECK(co_await world->until("/v1/groups/e", "/epoch", "3"));
  for (auto const& worker : world->workers) CHECK(worker->assignments.back().group.epoch == 3);
  co_await world->restart();
  CHECK((co_await world->get("/v1/groups/e")).text("/epoch") == "3");
  CHECK((co_await world->get("/v1/groups/g")).text("/epoch") == "1");
}

// The process ended after it had told some members.
awaitable<void> epoch_that_was_not_published(World* world) {
  co_await world->stand();
  CHECK((co_await world->put("/v1/groups/e", R"({"size":2,"on_failure":"shrink"})")).text("/epoch") == "1");
  co_await world->restart_after([world] {
    auto const file = JournalFile::open(world->journal()).value();
    CHECK(file->write(std::vector<Row>{row_of("e", JournalEpoch{2, std::nullopt})}).has_value());
  });
  CHECK(co_await world->until("/v1/groups/e", "/epoch", "3"));
}

awaitable<void> undecided(World* world) {
  co_await a_run_that_is_held(world);
  co_await world->restart_after([world] { leave_behind(world->journal(), {}); });
  auto const record = co_await world->get("/v1/collectives/c?wait=5s");
  CHECK(record.text("/state") == "failed");
  CHECK(record.text("/error/code") == "interrupted");
  CHECK(record.text("/error/retryable") == "true");
  for (auto const& worker : world->workers) CHECK(worker->tensors["x"].version == 1);
  for (auto const& worker : world->workers) CHECK(worker->dropped.size() == 1);
}

awaitable<void> another_run_was_decided(World* world) {
  co_await a_run_that_is_held(world);
  co_await world->restart_after([world] { leave_behind(world->journal(), {row_of("c", JournalDecision{1})}); });
  CHECK((co_await world->get("/v1/collectives/c?wait=5s")).text("/error/code") == "interrupted");
  for (auto const& worker : world->workers) CHECK(worker->tensors["x"].version == 1);
}

awaitable<void> one_has_committed(World* world) {
  co_await a_run_that_is_held(world);
  auto& first = *world->workers[0];
  first.committed.push_back(first.runs[0].run);
  ++first.tensors["x"].version;
  first.repeats_commits = true;
  co_await world->restart_after([world] { leave_behind(world->journal(), {}); });
  CHECK((co_await world->get("/v1/collectives/c?wait=5s")).text("/state") == "succeeded");
  for (auto const& worker : world->workers) CHECK(worker->tensors["x"].version == 2);
}

awaitable<void> one_has_let_go(World* world) {
  co_await a_run_that_is_held(world);
  world->workers[1]->dropped.push_back(world->workers[1]->runs[0].run);
  co_await world->restart_after([world] { leave_behind(world->journal(), {decision(*world)}); });
  CHECK((co_await world->get("/v1/collectives/c?wait=5s")).text("/error/code") == "interrupted");
  for (auto const& worker : world->workers) CHECK(worker->tensors["x"].version == 1);
}

awaitable<void> one_has_died(World* world) {
  co_await a_run_that_is_held(world);
  co_await world->workers[1]->die();
  co_await world->restart_after([world] { leave_behind(world->journal(), {decision(*world)}); });
  auto const record = co_await world->get("/v1/collectives/c?wait=5s");
  CHECK(record.text("/error/code") == "peer_lost");
  CHECK(record.text("/error/ranks") == "[1]");
  CHECK(world->workers[0]->tensors["x"].version == 2);
  CHECK(co_await world->until("/v1/workers/w1", "/state", "lost"));
}

awaitable<void> in_line(World* world) {
  co_await a_run_that_is_held(world);
  co_await world->restart_after([world] {
    leave_behind(world->journal(), {});
    auto const file = JournalFile::open(world->journal()).value();
    auto state = parse_rows(file->read().value()).value();
    auto second = state.collectives.at(0);
    second.stage = "begun";
    second.sequence = 9;
    second.record = api::Collective();
    second.record.id = "d";
    second.record.state = "pending";
    second.record.run = 1000;
    second.record.request = state.collectives.at(0).record.request;
    CHECK(file->write(std::vector<Row>{row_of(second)}).has_value());
  });
  CHECK((co_await world->get("/v1/collectives/d?wait=5s")).text("/state") == "succeeded");
  CHECK((co_await world->get("/v1/collectives/c?wait=5s")).text("/state") == "failed");
  for (auto const& worker : world->workers) CHECK(worker->tensors["x"].version == 2);
}

awaitable<void> full_disk(World* world) {
  co_await world->stand();
  std::optional<chorus::testing::FullDisk> full(std::in_place, 4096);
  auto const refused = co_await world->put("/v1/collectives/c?wait=5s", body);
  CHECK(refused.status == 503);
  CHECK(refused.code() == "unavailable");
  CHECK(refused.text("/detail").find("cannot be written") != std::string::npos);
  CHECK((co_await world->put("/v1/groups/h", R"({"size":1})")).status == 503);
  CHECK((co_await world->get("/v1/groups/g")).text("/epoch") == "1");
  CHECK((co_await world->put("/v1/workers/w0/lease", same_incarnation)).status == 200);
  auto const health = co_await world->get("/readyz");
  CHECK(health.status == 200);
  CHECK(health.body.find("nothing can be launched") != std::string::npos);
  full.reset();
  while ((co_await world->get("/readyz")).body != "ready\n") continue;
  CHECK((co_await world->put("/v1/collectives/c?wait=5s", body)).text("/state") == "succeeded");
  CHECK((co_await world->put("/v1/groups/h", R"({"size":1})")).text("/epoch") == "2");
}

awaitable<void> replaced(World* world) {
  co_await world->stand();
  auto const path = world->journal(), other = path + ".other";
  CHECK(JournalFile::open(other).has_value());
  std::filesystem::rename(other, path);
  auto health = co_await world->get("/readyz");
  while (health.body == "ready\n") health = co_await world->get("/readyz");
  CHECK(health.status == 200);
  auto const what = path + " was replaced by another file";
  CHECK(mentions(health.body, what));
  CHECK(mentions(health.body, "nothing can be launched"));
  CHECK(mentions(world->log.str(), what));
  CHECK((co_await world->put("/v1/collectives/c?wait=5s", body)).status == 503);
  std::filesystem::rename(path, other);
  while ((co_await world->get("/readyz")).body != "ready\n") continue;
  CHECK(mentions(world->log.str(), "the journal " + path + " can be written again"));
  CHECK((co_await world->put("/v1/collectives/c?wait=5s", body)).text("/state") == "succeeded");
}

void tell(awaitable<void> (*story)(World*)) {
  ScratchDirectory const here;
  World world(2, impatient(), here / "journal");
  world.tell(story(&world));
}

}  // namespace

TEST_CASE("after a restart workers, groups and collectives are known again, and workers notice nothing") {
  tell(everything_is_there);
}
TEST_CASE("an Idempotency-Key or an id that ran before the restart does not run again") { tell(a_name_is_run_once); }
TEST_CASE("a fenced incarnation stays fenced after a restart") { tell(fences_hold); }
TEST_CASE("the epoch of a deleted group is not given again after a restart") { tell(epochs_go_on); }
TEST_CASE("a launch that was refused before any worker was told runs when it is repeated after a restart") {
  tell(refused_for_now);
}
TEST_CASE("a decided commit reaches every rank after a restart") { tell(decided); }
TEST_CASE(
    "an undecided collective is aborted on every rank after a restart, and its record says that it may be repeated") {
  tell(undecided);
}
TEST_CASE("a decision about an earlier attempt of a collective commits nothing") { tell(another_run_was_decided); }
TEST_CASE("a commit that one rank has done counts as decided, even without a decision in the journal") {
  tell(one_has_committed);
}
TEST_CASE("a decision that no rank has followed is void if one rank has dropped its result") { tell(one_has_let_go); }
TEST_CASE("a rank that died while the coordinator was away is named in the record, and the others commit") {
  tell(one_has_died);
}
TEST_CASE("a rank that refuses the question for its run after a restart, and commits, has no report but its version") {
  tell(one_says_nothing);
}
TEST_CASE("a rank that is too busy for the question for its run after a restart is asked again") {
  tell(one_is_busy_at_first);
}
TEST_CASE("a failed call that members report to a coordinator that is stopping is heeded by the next one") {
  tell(trouble_at_the_end);
}
TEST_CASE("an epoch that some members may have taken, and that was not published, is followed by another one") {
  tell(epoch_that_was_not_published);
}
TEST_CASE("a queued collective runs after the restart, behind the collective that is reconciled") { tell(in_line); }
TEST_CASE(
    "on a full disk launches and changes of groups are refused, leases go on, and launches resume when there is room") {
  tell(full_disk);
}
TEST_CASE(
    "a journal that is replaced under the coordinator is named by /readyz and in the log, until it is moved away") {
  tell(replaced);
}
