// Whatever breaks, every surviving rank ends, with one error that names the culprit.
#include <doctest/doctest.h>

#include <algorithm>

#include "collectives/algorithms/catalogue.hpp"
#include "tests/support/mentions.hpp"
#include "worker/engine/testing/failing_runs.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using namespace std::chrono_literals;
using chorus::testing::mentions;

namespace {

// Starts all ranks of a collective but one, and lets them go as far as they can.
void start_all_but(Collective& collective, Fleet& fleet, plan::Rank absent) {
  for (plan::Rank rank = 0; rank < fleet.ranks(); ++rank)
    if (rank != absent) collective.start(rank);
  fleet.let_move();
}

}  // namespace

TEST_CASE("a connection that breaks at any moment fails the run everywhere, and the next run works") {
  for (auto const* algorithm : algorithms::all_for(Op::all_reduce)) {
    std::uint64_t cuts = 0;
    for (std::uint64_t n = 1;; n += 1 + n / 50) {
      LoopbackFleet fleet(options_of(3, n));
      fleet.network().cut_at_step(n);
      bool failed = false;
      {
        Collective collective(fleet, case_of(*algorithm), fleet.now());
        REQUIRE_MESSAGE(collective.run(), algorithm->name, " hangs after a cut at step ", n);
        for (plan::Rank rank = 0; rank < 3; ++rank) {
          auto const& result = collective.result(rank);
          if (result.status.has_value()) {
            CHECK(collective.wrong(rank).empty());
            continue;
          }
          failed = true;
          REQUIRE_MESSAGE(code_of(result) == EngineErrc::peer_lost, result.status.error().detail);
          REQUIRE(result.culprits.size() == 1);
          REQUIRE(mentions(result.status.error().detail, "lost rank " + std::to_string(result.culprits[0])));
        }
      }
      fleet.let_move();  // the memory of the run is gone now
      if (!fleet.network().has_cut()) break;
      cuts += failed;
      Collective again(fleet, case_of(*algorithm, 3000, 2), fleet.now());
      REQUIRE(again.run());
      REQUIRE(again.wrong().empty());
    }
    CHECK(cuts > 20);
  }
}

TEST_CASE("a link that breaks under the data of a rank that has ended well is missed in a second or two") {
  std::size_t missed = 0;
  for (std::uint64_t n = 1; n <= 60; ++n) {
    LoopbackFleet fleet(options_of(2, n));
    auto c = case_of(algorithms::centralized, 200);
    c.op = Op::reduce;
    c.timeout = 30s;
    Collective collective(fleet, c, fleet.now());
    collective.start(1);
    fleet.let_move(n % 7);
    fleet.network().cut_at_step(1);
    collective.start(0);
    auto const begun = fleet.now();
    for (fleet.let_move(); !collective.has_ended(0) && fleet.now() < begun + 3s; fleet.let_move()) fleet.pass(5ms);
    REQUIRE(collective.has_ended(0));
    auto const& result = collective.result(0);
    if (result.status.has_value()) {
      CHECK(collective.wrong(0).empty());
      continue;
    }
    INFO(result.status.error().detail);
    CHECK(code_of(result) == EngineErrc::peer_lost);
    CHECK(result.culprits.size() == 1);  // either end of the link, named by the rank that saw it first
    missed += mentions(result.status.error().detail, "its part of the run has ended, and the link is gone");
  }
  CHECK(missed > 0);
}

TEST_CASE("a worker that is killed is named by every survivor") {
  for (auto const* algorithm : algorithms::all_for(Op::all_reduce))
    for (plan::Rank victim = 0; victim < 5; ++victim) {
      LoopbackFleet fleet(options_of(5, 7 + victim));
      Collective collective(fleet, case_of(*algorithm), fleet.now());
      collective.start();
      fleet.let_move(60);
      fleet.kill(victim);
      fleet.let_move();
      for (plan::Rank rank = 0; rank < 5; ++rank) {
        if (rank == victim) continue;
        REQUIRE_MESSAGE(collective.has_ended(rank), algorithm->name, " rank ", rank, " does not notice ", victim);
        auto const& result = collective.result(rank);
        REQUIRE(result.status.has_error());
        CHECK(code_of(result) == EngineErrc::peer_lost);
        CHECK(result.culprits == std::vector<plan::Rank>{victim});
        CHECK(mentions(result.status.error().detail, "w" + std::to_string(victim)));
      }
    }
}

TEST_CASE("a worker that cannot be reached is named with its URL") {
  LoopbackFleet fleet(options_of(3));
  fleet.kill(2);
  Collective collective(fleet, case_of(algorithms::ring), fleet.now());
  start_all_but(collective, fleet, 2);
  for (plan::Rank rank : {0u, 1u}) {
    CHECK(code_of(collective.result(rank)) == EngineErrc::peer_lost);
    CHECK(mentions(collective.result(rank).status.error().detail, "loopback:2"));
  }
}

TEST_CASE("at the deadline every rank names the one that never called") {
  for (auto const* algorithm : algorithms::all_for(Op::all_reduce))
    for (plan::Rank absent = 0; absent < 5; ++absent) {
      LoopbackFleet fleet(options_of(5, 3 + absent));
      Collective collective(fleet, case_of(*algorithm), fleet.now());
      start_all_but(collective, fleet, absent);
      CHECK(collective.ended() == 0);
      fleet.pass(999ms);
      CHECK(collective.ended() == 0);
      fleet.pass(1ms);
      REQUIRE(collective.finish());
      for (plan::Rank rank = 0; rank < 5; ++rank) {
        if (rank == absent) continue;
        CHECK(code_of(collective.result(rank)) == EngineErrc::deadline_exceeded);
        CHECK(collective.result(rank).culprits == std::vector<plan::Rank>{absent});
        CHECK(mentions(collective.result(rank).status.error().detail, "never called"));
      }
      // When the absent rank comes after all, it is told at once.
      collective.start(absent);
      fleet.let_move();
      REQUIRE(collective.has_ended(absent));
      CHECK(collective.result(absent).status.has_error());
    }
}

TEST_CASE("a peer that called but does not go on is named once the grace is over") {
  LoopbackFleet fleet(options_of(2));
  Collective collective(fleet, case_of(algorithms::ring), fleet.now());
  collective.start();
  fleet.let_move(30);
  fleet.pass(1000ms);
  REQUIRE(collective.finish());
  CHECK(code_of(collective.result(0)) == EngineErrc::deadline_exceeded);
  CHECK(mentions(collective.result(0).status.error().detail, "was slow"));
}

TEST_CASE("a rank with a wrong token is refused, and learns that it is") {
  LoopbackFleet fleet(options_of(3));
  Collective collective(fleet, case_of(algorithms::tree), fleet.now());
  collective.spec(1).token ^= 1;
  REQUIRE(collective.run());
  for (plan::Rank rank = 0; rank < 3; ++rank) CHECK(collective.result(rank).status.has_error());
  CHECK(code_of(collective.result(1)) == EngineErrc::forbidden);
  CHECK(mentions(collective.result(1).status.error().detail, "wrong token"));
}

TEST_CASE("ranks that run different things all fail with both descriptions, at any size") {
  for (auto const* algorithm : algorithms::all_for(Op::all_reduce))
    for (std::uint64_t elements : {0ul, 1ul, 3000ul}) {
      LoopbackFleet fleet(options_of(3));
      Collective collective(fleet, case_of(*algorithm, elements), fleet.now());
      collective.spec(2).fingerprint ^= 1;
      collective.spec(2).description = "all_reduce max of something else";
      REQUIRE(collective.run());
      for (plan::Rank rank = 0; rank < 3; ++rank) {
        auto const& result = collective.result(rank);
        // A rank without bytes to wait for may have ended before rank 2 was noticed.
        if (elements == 0 && rank != 2 && result.status.has_value()) continue;
        REQUIRE(result.status.has_error());
        CHECK(code_of(result) == EngineErrc::plan_mismatch);
        CHECK(mentions(result.status.error().detail, "all_reduce max of something else"));
        CHECK(mentions(result.status.error().detail, "all_reduce sum f32[" + std::to_string(elements) + "]"));
        CHECK(std::count(result.culprits.begin(), result.culprits.end(), 2) == 1);
      }
    }
}

TEST_CASE("generators that disagree about one channel never exchange a byte on it") {
  LoopbackFleet fleet(options_of(2));
  Collective collective(fleet, case_of(algorithms::ring), fleet.now());
  auto other = *collective.spec(1).program;
  other.channels[0].receive_digest ^= 1;
  collective.spec(1).program = std::make_shared<plan::Program>(other);
  REQUIRE(collective.run());
  CHECK(code_of(collective.result(1)) == EngineErrc::plan_mismatch);
  CHECK(mentions(collective.result(1).status.error().detail, "by another plan"));
  CHECK(collective.result(1).statistics.bytes_received == 0);
}

TEST_CASE("an abort reaches every rank with its reason and without a culprit") {
  LoopbackFleet fleet(options_of(5));
  Collective collective(fleet, case_of(algorithms::ring, 30000), fleet.now());
  collective.start();
  fleet.let_move(80);
  fleet.engine(3).abort(1, Error(EngineErrc::aborted, "cancelled by the user"));
  REQUIRE(collective.finish());
  for (plan::Rank rank = 0; rank < 5; ++rank) {
    CHECK(code_of(collective.result(rank)) == EngineErrc::aborted);
    CHECK(collective.result(rank).culprits.empty());
    CHECK(mentions(collective.result(rank).status.error().detail, "cancelled by the user"));
  }
}

TEST_CASE("a rank that starts after the others gave up fails at once with their reason") {
  LoopbackFleet fleet(options_of(3));
  Collective collective(fleet, case_of(algorithms::ring), fleet.now());
  start_all_but(collective, fleet, 1);
  fleet.engine(0).abort(1, Error(EngineErrc::aborted, "cancelled by the user"));
  fleet.let_move();
  REQUIRE(collective.has_ended(2));
  collective.start(1);
  REQUIRE(collective.has_ended(1));
  CHECK(mentions(collective.result(1).status.error().detail, "cancelled by the user"));
}

TEST_CASE("a rank that has its result may leave before the others have theirs") {
  for (auto const* algorithm : algorithms::all_for(Op::all_reduce))
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      LoopbackFleet fleet(options_of(4, seed));
      Collective collective(fleet, case_of(*algorithm), fleet.now());
      collective.start();
      while (collective.ended() == 0) fleet.let_move(1);
      plan::Rank first = 0;
      while (!collective.has_ended(first)) ++first;
      fleet.engine(first).shut_down();
      REQUIRE(collective.finish());
      // Everything that the leaving rank owed to others was with the network when it left.
      auto const wrong = collective.wrong();
      REQUIRE_MESSAGE(wrong.empty(), wrong);
    }
}

TEST_CASE("other runs on the same links go on when one of them fails") {
  LoopbackFleet fleet(options_of(4));
  Collective doomed(fleet, case_of(algorithms::ring, 30000, 1), fleet.now());
  Collective other(fleet, case_of(algorithms::tree, 30000, 2), fleet.now());
  doomed.start();
  other.start();
  fleet.let_move(100);
  fleet.engine(2).abort(1, Error(EngineErrc::aborted, "cancelled"));
  REQUIRE(doomed.finish());
  REQUIRE(other.finish());
  CHECK(doomed.result(0).status.has_error());
  auto const wrong = other.wrong();
  CHECK_MESSAGE(wrong.empty(), wrong);
}

TEST_CASE("a run number is used once") {
  LoopbackFleet fleet(options_of(2));
  Collective first(fleet, case_of(algorithms::ring), fleet.now());
  first.start(0);
  Collective second(fleet, case_of(algorithms::ring), fleet.now());
  second.start(0);
  REQUIRE(second.has_ended(0));
  CHECK(mentions(second.result(0).status.error().detail, "running already"));
  first.start(1);
  REQUIRE(first.finish());
  Collective third(fleet, case_of(algorithms::ring), fleet.now());
  third.start(0);
  CHECK(mentions(third.result(0).status.error().detail, "has ended here before"));
}

TEST_CASE("what is remembered of ended runs is bounded") {
  LoopbackFleet fleet(options_of(2));
  auto const run_number = [&](std::uint64_t run) {
    Collective collective(fleet, case_of(algorithms::ring, 1, run), fleet.now());
    REQUIRE(collective.run());
    return collective.result(0).status.has_value();
  };
  for (std::uint64_t run = 1; run <= 2100; ++run) REQUIRE(run_number(run));
  CHECK_FALSE(run_number(2100));
  CHECK_FALSE(run_number(2100 - 1023));
  CHECK(run_number(1));  // long forgotten
}

TEST_CASE("a spec that does not fit together is refused before anything is sent") {
  LoopbackFleet fleet(options_of(2));
  Collective collective(fleet, case_of(algorithms::ring), fleet.now());
  auto const refused_because = [&](auto change) {
    auto spec = collective.spec(0);
    change(spec);
    std::string why;
    fleet.start(0, spec, [&](RunResult result) { why = result.status.error().detail; });
    return why;
  };
  CHECK(mentions(refused_because([](RunSpec& spec) { spec.sizes.elements += 1; }), "bytes"));
  CHECK(mentions(refused_because([](RunSpec& spec) { spec.members.pop_back(); }), "members"));
  CHECK(mentions(refused_because([](RunSpec& spec) { spec.reduce = ReduceOp::bxor; }), "bxor of f32: bit operations"));
  CHECK(mentions(refused_because([](RunSpec& spec) { spec.program = nullptr; }), "no program"));
  CHECK(mentions(refused_because([](RunSpec& spec) { std::swap(spec.members[0], spec.members[1]); }), "rank order"));
  CHECK(fleet.engine(0).links() == 0);
}

TEST_CASE("shutting down ends every run with a reason and tells the peers") {
  LoopbackFleet fleet(options_of(2));
  Collective collective(fleet, case_of(algorithms::ring), fleet.now());
  collective.start();
  fleet.let_move(20);
  fleet.engine(0).shut_down();
  REQUIRE(collective.finish());
  CHECK(mentions(collective.result(0).status.error().detail, "w0 stops"));
  CHECK(collective.result(1).status.has_error());
  Collective later(fleet, case_of(algorithms::ring, 3000, 2), fleet.now());
  later.start(0);
  REQUIRE(later.has_ended(0));
  CHECK(later.result(0).status.has_error());
}
