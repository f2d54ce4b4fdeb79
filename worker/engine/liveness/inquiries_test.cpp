// Signs of life: a rank that only waits in turn is told from one that is silent, and one that is silent for too long is
// lost.
#include <doctest/doctest.h>

#include <algorithm>

#include "collectives/algorithms/catalogue.hpp"
#include "tests/support/mentions.hpp"
#include "worker/engine/liveness/failure_detector.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using namespace std::chrono_literals;
using chorus::testing::mentions;
using links::Doing;
using links::Suspicion;

namespace {

constexpr FailureDetector::TimePoint start{1h};

links::Tell running(Suspicion suspicion, std::uint32_t suspect, std::uint64_t since_us = 0) {
  return {{.since_us = since_us, .suspect = suspect, .suspicion = suspicion}, "rank 1 waits for it"};
}

FleetOptions options_of(std::uint32_t ranks) {
  FleetOptions options;
  options.ranks = ranks;
  options.network = {3, 5000, 2000};
  options.eager_bytes = 1024;
  return options;
}

Case case_of(plan::Algorithm const& algorithm, std::chrono::milliseconds timeout = 30s) {
  Case c;
  c.algorithm = &algorithm;
  c.elements = 3000;
  c.segment_bytes = 1024;
  c.timeout = timeout;
  return c;
}

EngineErrc code_of(RunResult const& result) { return static_cast<EngineErrc>(result.status.error().code.value()); }

// Passes the time in steps in which all live ranks ask and answer.
void live_through(LoopbackFleet& fleet, std::chrono::milliseconds time) {
  for (auto passed = 0ms; passed < time; passed += 100ms) {
    fleet.pass(100ms);
    fleet.let_move();
  }
}

}  // namespace

TEST_CASE("a rank that owes an answer is silent, from the first ask on") {
  FailureDetector failure_detector(3);
  failure_detector.asked(1, 0, start);
  CHECK_FALSE(failure_detector.suspect(1, 0, "", start + 99ms));
  failure_detector.asked(1, 0, start + 200ms);
  auto const suspect = failure_detector.suspect(1, 0, "rank 0 waits for it", start + 350ms);
  REQUIRE(suspect);
  CHECK(suspect->rank == 1);
  CHECK(suspect->kind == Suspicion::silent);
  CHECK(suspect->lasting == 350ms);
  CHECK(suspect->text == "rank 0 waits for it");
  failure_detector.told(1, running(Suspicion::nobody, 0), start + 360ms);
  CHECK(failure_detector.owing(1, start + 10s) == 0ms);
}

TEST_CASE("a rank from which frames come is alive, though its answers wait behind them") {
  FailureDetector failure_detector(2);
  failure_detector.asked(1, 7, start);
  failure_detector.asked(1, 8, start + 4s);
  CHECK(failure_detector.owing(1, start + 5s) == 1s);
}

TEST_CASE("a rank that waits for another one is not suspected, the other one is") {
  FailureDetector failure_detector(4);
  failure_detector.told(1, running(Suspicion::silent, 3, 2000000), start);
  auto const suspect = failure_detector.suspect(1, 0, "", start + 1s);
  REQUIRE(suspect);
  CHECK(suspect->rank == 3);
  CHECK(suspect->kind == Suspicion::silent);
  CHECK(suspect->lasting == 3s);
  CHECK(suspect->text == "rank 1 waits for it");
}

TEST_CASE("a rank that says that it waits for us, or for a rank that does not exist, tells nothing") {
  FailureDetector failure_detector(2);
  failure_detector.told(1, running(Suspicion::slow, 0), start);
  CHECK_FALSE(failure_detector.suspect(1, 0, "", start + 1s));
  failure_detector.told(1, running(Suspicion::slow, 2), start);
  CHECK_FALSE(failure_detector.suspect(1, 0, "", start + 1s));
}

TEST_CASE("a rank that waits for none is slow, and one that did not call is named as that") {
  FailureDetector failure_detector(2);
  failure_detector.told(1, running(Suspicion::nobody, 0), start);
  CHECK(failure_detector.suspect(1, 0, "", start + 1s)->kind == Suspicion::slow);
  failure_detector.told(1, {{.doing = Doing::not_called}, ""}, start);
  CHECK(failure_detector.suspect(1, 0, "", start + 1s)->kind == Suspicion::not_called);
}

TEST_CASE("a rank that is stopped is lost after the silence, and every survivor names it") {
  for (auto const* algorithm : algorithms::all_for(Op::all_reduce))
    for (plan::Rank victim = 0; victim < 4; ++victim) {
      LoopbackFleet fleet(options_of(4));
      Collective collective(fleet, case_of(*algorithm), fleet.now());
      collective.start();
      fleet.let_move(80);
      fleet.stop(victim);
      live_through(fleet, 5300ms);
      for (plan::Rank rank = 0; rank < 4; ++rank) {
        if (rank == victim) continue;
        REQUIRE_MESSAGE(collective.has_ended(rank), algorithm->name, " rank ", rank, " waits for ", victim);
        auto const& result = collective.result(rank);
        if (result.status.has_value()) continue;  // this rank had everything it needs
        CHECK(code_of(result) == EngineErrc::peer_lost);
        CHECK_MESSAGE(result.culprits == std::vector<plan::Rank>{victim}, result.status.error().detail);
        CHECK(mentions(result.status.error().detail, "has not answered for"));
        CHECK(mentions(result.status.error().detail, "step"));
      }
      fleet.go_on(victim);
    }
}

TEST_CASE("a rank that was stopped itself and goes on accuses no rank that it could not hear meanwhile") {
  LoopbackFleet fleet(options_of(3));
  Collective collective(fleet, case_of(algorithms::ring), fleet.now());
  collective.start(0);
  collective.start(1);
  fleet.let_move();
  live_through(fleet, 100ms);  // the links exist
  fleet.pass(100ms);           // rank 0 asks
  fleet.stop(0);
  live_through(fleet, 4700ms);
  fleet.go_on(0);
  fleet.stop(1);
  fleet.pass(400ms);  // and rank 0 reads its clock before its links
  CHECK_FALSE(collective.has_ended(0));
  fleet.go_on(1);
  fleet.let_move();
  collective.start(2);
  REQUIRE(collective.finish());
  CHECK(collective.wrong().empty());
}

TEST_CASE("at the deadline the silent rank is named also by the ranks that only wait for others") {
  LoopbackFleet fleet(options_of(6));
  Collective collective(fleet, case_of(algorithms::ring, 3s), fleet.now());
  collective.start();
  fleet.let_move(80);
  fleet.stop(3);
  live_through(fleet, 3200ms);
  for (plan::Rank rank = 0; rank < 6; ++rank) {
    if (rank == 3) continue;
    REQUIRE(collective.has_ended(rank));
    auto const& result = collective.result(rank);
    CHECK(code_of(result) == EngineErrc::deadline_exceeded);
    CHECK_MESSAGE(result.culprits == std::vector<plan::Rank>{3}, result.status.error().detail);
  }
  fleet.go_on(3);
}

TEST_CASE("a rank that has not called yet is not lost, however long it takes") {
  LoopbackFleet fleet(options_of(3));
  Collective collective(fleet, case_of(algorithms::ring, 60s), fleet.now());
  collective.start(0);
  collective.start(2);
  fleet.let_move();
  live_through(fleet, 20s);
  CHECK(collective.ended() == 0);
  collective.start(1);
  REQUIRE(collective.finish());
  CHECK(collective.wrong().empty());
}

TEST_CASE("a rank that died before it called is found by those that only receive from it") {
  LoopbackFleet fleet(options_of(2));
  auto c = case_of(algorithms::binomial);
  c.op = Op::broadcast;
  c.root = 1;
  Collective collective(fleet, c, fleet.now());
  fleet.kill(1);
  collective.start(0);
  fleet.let_move();
  CHECK_FALSE(collective.has_ended(0));  // no rank has dialed another one
  live_through(fleet, 300ms);
  REQUIRE(collective.has_ended(0));
  CHECK(code_of(collective.result(0)) == EngineErrc::peer_lost);
  CHECK(mentions(collective.result(0).status.error().detail, "connection refused"));
}
