// Ranks of a retired epoch, or of an older process of the same name, are refused.
#include <doctest/doctest.h>

#include "collectives/algorithms/catalogue.hpp"
#include "tests/support/mentions.hpp"
#include "worker/engine/testing/failing_runs.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using chorus::testing::mentions;

TEST_CASE("a rank of an older epoch is fenced, and the deadline names it") {
  LoopbackFleet fleet(options_of(2));
  Collective collective(fleet, case_of(algorithms::ring), fleet.now());
  collective.spec(0).epoch = 7;
  REQUIRE(collective.run());
  CHECK(code_of(collective.result(1)) == EngineErrc::epoch_fenced);
  CHECK(mentions(collective.result(1).status.error().detail, "epoch 7"));
}

TEST_CASE("a rank that opens a run of a retired epoch is told so at once, before and after the others heard of it") {
  for (bool const waits_already : {true, false}) {
    for (bool const left_out : {true, false}) {
      CAPTURE(waits_already);
      CAPTURE(left_out);
      LoopbackFleet fleet(options_of(2));
      Collective collective(fleet, case_of(algorithms::ring), fleet.now());
      Retired over{collective.spec(0).token,
                   collective.spec(0).epoch,
                   {EngineErrc::peer_lost, "g went on without rank 1 (w1)", {1}, {}},
                   {}};
      if (left_out) over.left_out = {"w1"};
      if (!waits_already) fleet.engine(0).retire(over);
      collective.start(1);
      fleet.let_move();
      if (waits_already) fleet.engine(0).retire(over);
      fleet.let_move();
      REQUIRE(collective.has_ended(1));
      CHECK(code_of(collective.result(1)) == (left_out ? EngineErrc::epoch_fenced : EngineErrc::peer_lost));
      CHECK(mentions(collective.result(1).status.error().detail, "g went on without rank 1 (w1)"));
    }
  }
}

TEST_CASE("a run that is under way with a peer that is fenced fails for that reason, on whichever link it is") {
  for (std::uint64_t const elements : {10, 200000})
    for (plan::Rank const by : {0U, 1U}) {
      LoopbackFleet fleet(options_of(2));
      Collective before(fleet, case_of(algorithms::ring), fleet.now());
      REQUIRE(before.run());
      Collective during(fleet, case_of(algorithms::ring, elements, 2), fleet.now());
      during.start(by);
      fleet.let_move(2);
      during.start(1 - by);
      fleet.engine(by).fence("w" + std::to_string(1 - by), 555);
      fleet.let_move();
      REQUIRE(during.has_ended(by));
      CHECK(code_of(during.result(by)) == EngineErrc::epoch_fenced);
    }
}

TEST_CASE("links of an older incarnation are closed, and refused from then on") {
  LoopbackFleet fleet(options_of(2));
  Collective before(fleet, case_of(algorithms::ring), fleet.now());
  REQUIRE(before.run());
  fleet.engine(0).fence("w1", 555);
  fleet.let_move();
  CHECK(fleet.engine(0).links() == 0);

  Collective after(fleet, case_of(algorithms::ring, 3000, 2), fleet.now());
  after.start(1);
  fleet.let_move();
  REQUIRE(after.has_ended(1));
  CHECK(code_of(after.result(1)) == EngineErrc::epoch_fenced);
  after.start(0);
  REQUIRE(after.has_ended(0));
  CHECK(code_of(after.result(0)) == EngineErrc::epoch_fenced);
  CHECK(after.result(0).culprits == std::vector<plan::Rank>{1});
}
