#include <doctest/doctest.h>

#include <algorithm>

#include "http/json/json.hpp"
#include "server/coordinator/collectives/record.hpp"
#include "server/coordinator/collectives/records.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""h;
using http::ProblemCode;

namespace {

TimePoint const start{1h};

api::CollectiveRequest request(std::string tensor = "x") {
  api::CollectiveRequest made;
  made.group = "g";
  made.tensor = std::move(tensor);
  return made;
}

api::Group group_of(std::uint32_t ranks) {
  api::Group group;
  group.name = "g";
  group.epoch = 5;
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    group.members.push_back({rank, "w" + std::to_string(rank), "1", "", {}, {}});
  return group;
}

model::Choice choice_of(std::uint32_t ranks) {
  std::vector<Locality> const localities(ranks);
  return model::select({}, localities, 100, 4, model::Constants::defaults()).value();
}

Record running_record(std::uint32_t ranks) {
  Record record("c", 7, request(), "now");
  Admitted admitted;
  admitted.shape = {100};
  admitted.elements = 100;
  admitted.bytes = 400;
  admitted.versions.resize(ranks, 1);
  admitted.tensors.resize(ranks);
  admitted.devices.resize(ranks, "cuda:0");
  record.plan(group_of(ranks), admitted, choice_of(ranks), start);
  record.run();
  return record;
}

api::RunReport report(double seconds, std::string digest = "d") {
  api::RunReport made;
  made.state = "succeeded";
  made.seconds = seconds;
  made.output_digest = std::move(digest);
  return made;
}

Random counting() {
  return [next = std::uint64_t{0}]() mutable { return ++next; };
}

}  // namespace

TEST_CASE("a record that asks again is reset except for its run") {
  auto record = running_record(2);
  record.belongs_to("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  record.rank_succeeded(0, report(0.5), start + 1s);
  record.ask_again(8);
  Record untouched("c", 8, request(), "now");
  untouched.belongs_to("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  CHECK(http::encode(record.view()) == http::encode(untouched.view()));
  record.fail(http::Problem(ProblemCode::mismatch, "shapes"), start + 2s);
  CHECK(record.refused());
  CHECK(record.view().seconds == 0);
}

TEST_CASE("a successful collective reports the choice, its reason, and its time") {
  auto record = running_record(2);
  CHECK(record.view().state == "running");
  CHECK(record.view().epoch == 5);
  CHECK(record.view().dtype == "f32");
  CHECK(record.view().considered.size() >= 3);
  CHECK_FALSE(record.view().reason.empty());
  CHECK(record.view().lower_bound.bytes_per_rank == 400);
  CHECK(record.view().ranks[1].device == "cuda:0");
  record.rank_succeeded(1, report(0.5), start + 1000ms);
  record.rank_succeeded(0, report(1.0), start + 1100ms);
  CHECK(record.view().arrival_skew_seconds == doctest::Approx(0.4));
  CHECK_FALSE(record.check_digests().has_value());
  record.succeed({3, 4}, start + 1500ms);
  CHECK(record.ended());
  CHECK_FALSE(record.refused());
  CHECK(record.view().state == "succeeded");
  CHECK(record.view().seconds == doctest::Approx(1.5));
  CHECK(record.view().ranks[1].report->version == 4);
}

TEST_CASE("a collective that fails before it runs was refused; one that fails later was not") {
  Record refused("c", 1, request(), "now");
  refused.fail({ProblemCode::mismatch, "no"}, start);
  CHECK(refused.refused());
  CHECK(refused.view().error->instance == "/v1/collectives/c");
  CHECK(refused.view().seconds == 0);

  auto failed = running_record(2);
  failed.rank_succeeded(0, report(0.1), start + 1s);
  failed.fail({ProblemCode::peer_lost, "w1"}, start + 2s);
  CHECK_FALSE(failed.refused());
  CHECK(failed.view().state == "failed");
  CHECK(failed.view().ranks[0].state == "succeeded");
  CHECK(failed.view().ranks[1].state == "failed");

  Record cancelled("c", 1, request(), "now");
  cancelled.cancel({ProblemCode::cancelled, "asked"}, start);
  CHECK(cancelled.ended());
  CHECK_FALSE(cancelled.refused());
  CHECK(cancelled.view().state == "cancelled");
}

TEST_CASE("different results name the ranks in the minority") {
  auto record = running_record(3);
  for (auto const& [rank, digest] : {std::pair{0u, "bad"}, {1u, "good"}, {2u, "good"}})
    record.rank_succeeded(rank, report(0.1, digest), start + 1s);
  auto const problem = record.check_digests();
  REQUIRE(problem.has_value());
  CHECK(problem->code == ProblemCode::digest_mismatch);
  CHECK(problem->ranks == std::vector<std::uint32_t>{0});
  CHECK(problem->errors.front().detail == "rank 0 ('w0') has bad, 2 of 3 ranks have good");
}

TEST_CASE("ranks without a digest are not compared") {
  auto record = running_record(2);
  record.rank_succeeded(0, report(0.1), start + 1s);
  auto without = report(0.1);
  without.output_digest.reset();
  record.rank_succeeded(1, without, start + 1s);
  CHECK_FALSE(record.check_digests().has_value());
}

TEST_CASE("a launch under a known name is the same launch, or is refused with another body") {
  Records records(counting(), {});
  auto const first = records.begin({std::nullopt, "key"}, request(), "now").value();
  CHECK(first.created);
  auto const again = records.begin({std::nullopt, "key"}, request(), "later").value();
  CHECK_FALSE(again.created);
  CHECK(again.record == first.record);
  CHECK(records.begin({std::nullopt, "key"}, request("y"), "later").error().code == ProblemCode::idempotency_reused);
  CHECK(records.knows({std::nullopt, "key"}));
  CHECK_FALSE(records.knows({std::nullopt, "other"}));
  CHECK_FALSE(records.knows({std::nullopt, std::nullopt}));

  CHECK(records.begin({"mine", std::nullopt}, request(), "now").value().created);
  CHECK_FALSE(records.begin({"mine", std::nullopt}, request(), "now").value().created);
  CHECK(records.begin({"mine", std::nullopt}, request("y"), "now").error().code == ProblemCode::already_exists);

  auto const anonymous = records.begin({}, request(), "now").value();
  CHECK(anonymous.created);
  CHECK(records.begin({}, request(), "now").value().record != anonymous.record);
  CHECK(records.find("mine").value()->view().id == "mine");
  CHECK(records.find("c-none").error().code == ProblemCode::unknown_collective);
}

TEST_CASE("run numbers fit into JSON, and two processes of a coordinator do not share them") {
  Records one([] { return ~std::uint64_t{0}; }, {});
  Records other([] { return std::uint64_t{12345}; }, {});
  auto const run = one.begin({}, request(), "now").value().record->view().run;
  CHECK(run < (std::uint64_t{1} << 53));
  CHECK(run != other.begin({}, request(), "now").value().record->view().run);
  CHECK(one.begin({"next", std::nullopt}, request(), "now").value().record->view().run == run + 1);
}

TEST_CASE("run numbers rise with each restart, and two processes on copies of one store do not share them") {
  constexpr std::uint64_t last = 4711;
  auto const first_after = [](std::uint64_t kept, std::uint64_t random) {
    Records records([random] { return random; }, {});
    records.restore({}, kept, 1);
    return records.begin({}, request(), "now").value().record->view().run;
  };
  auto const one = first_after(last, 12345), other = first_after(last, 12346);
  CHECK(one > last);
  CHECK(other > last);
  // Workers remember the last thousand.
  CHECK(std::max(one, other) - std::min(one, other) > 100000);
  CHECK(first_after(last, 0) > last);
  // Near the largest number of JSON they begin anew.
  CHECK(first_after((std::uint64_t{1} << 53) - 1, ~std::uint64_t{0}) < (std::uint64_t{1} << 53));
}

TEST_CASE("the last ended records are kept with their keys, older ones are forgotten") {
  Records records(counting(), {2, 10});
  for (auto const* key : {"a", "b", "c"}) {
    auto const record = records.begin({std::nullopt, key}, request(), "now").value().record;
    record->cancel({ProblemCode::cancelled, ""}, start);
    (void)records.keep_for_a_while(*record);
  }
  CHECK(records.running() == 0);
  CHECK_FALSE(records.knows({std::nullopt, "a"}));
  CHECK(records.knows({std::nullopt, "b"}));
  CHECK(records.list(10, "").value().items.size() == 2);
  CHECK(records.begin({std::nullopt, "a"}, request("other"), "now").value().created);
}

TEST_CASE("a launch that was refused for now and never began runs when it is repeated; no other does") {
  Records records(counting(), {});
  for (auto const& name : {Records::Name{"mine", std::nullopt}, Records::Name{std::nullopt, "key"}}) {
    auto const first = records.begin(name, request(), "now").value().record;
    first->fail({ProblemCode::worker_unreachable, ""}, start);
    (void)records.keep_for_a_while(*first);
    CHECK(first->may_be_repeated());
    CHECK_FALSE(records.knows(name));
    auto const second = records.begin(name, request(), "now").value();
    CHECK(second.created);
    second.record->fail({ProblemCode::mismatch, ""}, start);
    (void)records.keep_for_a_while(*second.record);
    CHECK_FALSE(records.begin(name, request(), "now").value().created);
  }
  CHECK(records.running() == 0);
  CHECK(records.list(10, "").value().items.size() == 3);
  auto launched = running_record(2);
  launched.fail({ProblemCode::peer_lost, ""}, start);
  CHECK_FALSE(launched.may_be_repeated());
}

TEST_CASE("too many running collectives are refused, with a time for the retry") {
  Records records(counting(), {10, 2});
  CHECK(records.begin({}, request(), "now").has_value());
  CHECK(records.begin({"mine", std::nullopt}, request(), "now").has_value());
  auto const full = records.begin({}, request(), "now");
  CHECK(full.error().code == ProblemCode::unavailable);
  CHECK(full.error().retry_after_s == 1u);
  CHECK(records.begin({"mine", std::nullopt}, request(), "now").has_value());
}

TEST_CASE("the list is newest first and continues where the previous page ended") {
  Records records(counting(), {});
  for (auto const* id : {"a", "b", "c", "d", "e"})
    CHECK(records.begin({id, std::nullopt}, request(), "now").has_value());
  std::string seen;
  std::string cursor;
  for (int page = 0; page < 3; ++page) {
    auto const list = records.list(2, cursor).value();
    for (auto const& item : list.items) seen += item.id;
    CHECK(list.next_cursor.has_value() == (page < 2));
    cursor = list.next_cursor.value_or("");
  }
  CHECK(seen == "edcba");
  CHECK(records.list(2, "x").error().code == ProblemCode::bad_request);
  CHECK(records.list(2, "99999999999999999999999").error().code == ProblemCode::bad_request);
  CHECK(records.list(9, "18446744073709551615").value().items.size() == 5);
  CHECK(records.list(9, "0").value().items.empty());
}

TEST_CASE("an Idempotency-Key is one printable field") {
  auto const read = [](std::vector<std::string> const& values) {
    http::Fields fields;
    for (auto const& value : values) fields.add("idempotency-key", value);
    return idempotency_key(fields);
  };
  CHECK_FALSE(read({}).value().has_value());
  CHECK(read({"k 1"}).value() == "k 1");
  for (auto const& wrong : std::vector<std::vector<std::string>>{{""}, {"a", "b"}, {std::string(256, 'a')}, {"a\tb"}})
    CHECK(read(wrong).error().code == ProblemCode::bad_request);
}
