// Whatever breaks while ranks read each other's memory, no wrong result is reported as success, and the culprit is
// named.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "collectives/algorithms/catalogue.hpp"
#include "tests/support/mentions.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"
#include "worker/engine/testing/puppets/puppet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using namespace std::chrono_literals;
using chorus::testing::mentions;
using links::FrameHeader;

namespace {

FleetOptions options_of(std::uint32_t ranks, std::uint64_t seed, Tensors tensors = Tensors::in_arenas) {
  FleetOptions options;
  options.ranks = ranks;
  options.network.seed = seed;
  options.eager_bytes = 1024;
  options.arenas = make_arenas(ranks, 64u << 20);
  options.tensors = tensors;
  return options;
}

Case case_of(plan::Algorithm const& algorithm, std::uint64_t elements = 30000, std::uint64_t run = 1) {
  Case c;
  c.algorithm = &algorithm;
  c.elements = elements;
  c.segment_bytes = 8192;
  c.run = run;
  c.timeout = 1000ms;
  return c;
}

EngineErrc code_of(RunResult const& result) { return static_cast<EngineErrc>(result.status.error().code.value()); }

void spoil(std::span<std::byte const> bytes) { std::memset(const_cast<std::byte*>(bytes.data()), 0x66, bytes.size()); }

}  // namespace

TEST_CASE("the suite's late starters, with every link polled when the test says so" *
          doctest::test_suite("exhaustive")) {
  for (auto const tensors : {Tensors::in_arenas, Tensors::elsewhere})
    for (auto const* algorithm : algorithms::all_for(Op::all_reduce))
      for (std::size_t steps = 0; steps < 40; ++steps) {
        LoopbackFleet fleet(options_of(3, steps + 1, tensors));
        Collective collective(fleet, case_of(*algorithm, steps % 2 == 0 ? 300 : 30000), fleet.now());
        for (plan::Rank rank : {1u, 2u}) collective.start(rank);
        fleet.let_move(steps);
        collective.start(0);
        REQUIRE(collective.finish());
        auto const wrong = collective.wrong();
        REQUIRE_MESSAGE(wrong.empty(), wrong);
      }
}

TEST_CASE("a rank that gives up while others read its memory spoils no result, and its reason reaches them" *
          doctest::test_suite("exhaustive")) {
  std::size_t failed = 0;
  for (auto const* algorithm : algorithms::all_for(Op::all_reduce))
    for (std::size_t steps = 0; steps < 60; ++steps) {
      LoopbackFleet fleet(options_of(3, steps + 1));
      Collective collective(fleet, case_of(*algorithm), fleet.now());
      collective.start();
      fleet.let_move(steps);
      bool const had_ended = collective.has_ended(1);
      fleet.engine(1).abort(1, Error(EngineErrc::aborted, "cancelled by the user"));
      REQUIRE(collective.has_ended(1));
      if (!had_ended) {
        spoil(collective.spec(1).input);
        spoil(collective.spec(1).output);
      }
      REQUIRE(collective.finish());
      for (plan::Rank rank : {0u, 2u}) {
        auto const& result = collective.result(rank);
        if (result.status.has_value()) {
          CHECK(collective.wrong(rank) == "");
          continue;
        }
        ++failed;
        CHECK(mentions(result.status.error().detail, "cancelled by the user"));
      }
      Collective again(fleet, case_of(*algorithm, 3000, 2), fleet.now());
      REQUIRE(again.run());
      CHECK(again.wrong() == "");
    }
  CHECK(failed > 100);
}

TEST_CASE("through shared memory, a worker that is killed is named by every survivor") {
  for (auto const* algorithm : algorithms::all_for(Op::all_reduce))
    for (plan::Rank victim = 0; victim < 4; ++victim)
      for (std::size_t steps : {5u, 15u, 30u}) {
        LoopbackFleet fleet(options_of(4, 7 + victim));
        Collective collective(fleet, case_of(*algorithm), fleet.now());
        collective.start();
        fleet.let_move(steps);
        fleet.kill(victim);
        fleet.let_move();
        for (plan::Rank rank = 0; rank < 4; ++rank) {
          if (rank == victim) continue;
          REQUIRE_MESSAGE(collective.has_ended(rank), algorithm->name, " rank ", rank, " does not notice ", victim);
          auto const& result = collective.result(rank);
          if (result.status.has_value()) {
            CHECK(collective.wrong(rank) == "");
            continue;
          }
          CHECK(code_of(result) == EngineErrc::peer_lost);
          CHECK(result.culprits == std::vector<plan::Rank>{victim});
        }
      }
}

TEST_CASE("a peer that stops reading meets the deadline and is named") {
  LoopbackFleet fleet(options_of(2, 1));
  Collective connects(fleet, case_of(algorithms::ring, 100), fleet.now());
  REQUIRE(connects.run());
  Collective collective(fleet, case_of(algorithms::ring, 30000, 2), fleet.now());
  fleet.stop(1);
  collective.start();
  fleet.let_move();
  CHECK_FALSE(collective.has_ended(0));
  fleet.pass(1000ms);
  fleet.let_move();
  REQUIRE(collective.has_ended(0));
  CHECK(code_of(collective.result(0)) == EngineErrc::deadline_exceeded);
  CHECK(collective.result(0).culprits == std::vector<plan::Rank>{1});
}

TEST_CASE("memory that is truncated under a run fails it, and never a result that is wrong" *
          doctest::test_suite("exhaustive")) {
  for (auto const* algorithm : algorithms::all_for(Op::all_reduce)) {
    std::size_t failed = 0;
    for (std::size_t steps = 0; steps < 40; ++steps) {
      auto const options = options_of(3, steps + 1);
      LoopbackFleet fleet(options);
      Collective collective(fleet, case_of(*algorithm), fleet.now());
      collective.start();
      fleet.let_move(steps);
      REQUIRE(ftruncate(options.arenas[1]->mapping().descriptor(), 4096) == 0);
      fleet.let_move();
      if (steps == 0) {  // its links do not exist yet: others are used
        REQUIRE(collective.has_ended(1));
        CHECK(mentions(collective.result(1).status.error().detail, "the shared memory of w1 was truncated"));
        CHECK(collective.ended() == 3);
      }
      fleet.pass(1000ms);
      fleet.pass(200ms);
      fleet.let_move();
      // Rank 1's own tensors are gone: only the error of its result counts.
      for (plan::Rank rank : {0u, 2u}) {
        REQUIRE(collective.has_ended(rank));
        if (collective.result(rank).status.has_value())
          CHECK(collective.wrong(rank) == "");
        else
          ++failed;
      }
    }
    CHECK_MESSAGE(failed > 5, algorithm->name);
  }
}

TEST_CASE("through shared memory, an impossible frame closes the link and fails the run with the frame's name") {
  struct Bad {
    std::string says;
    FrameHeader header;
  };
  auto const header = [](auto change) {
    FrameHeader h;
    h.run = 1;
    h.epoch = 1;
    h.length = 4;
    change(h);
    return h;
  };
  std::vector<Bad> const table{
      {"magic", header([](auto& h) { h.magic = 7; })},
      {"data frame with a length of 4294967295", header([](auto& h) { h.length = 0xffffffff; })},
      {"epoch 2", header([](auto& h) { h.epoch = 2; })},
      {"data of run 77, which was never opened", header([](auto& h) { h.run = 77; })},
      {"expected byte 0", header([](auto& h) { h.offset = 4; })},
      {"elements have 4 bytes", header([](auto& h) { h.length = 6; })},
      {"beyond what a ring can hold", header([](auto& h) { h.length = 4000; })},
  };
  for (auto const& [says, bad] : table) {
    CAPTURE(says);
    LoopbackFleet fleet(options_of(2, 1));
    auto c = case_of(algorithms::ring, 30000);
    Collective collective(fleet, c, fleet.now());
    Puppet peer;
    fleet.impersonated = 1;
    collective.start(0);
    peer.hold(fleet.connect_stranger(0, {"w1", 101}));
    peer.send_open(1, 1, open_of(collective.spec(1), 1024), "the same");
    fleet.let_move();
    CHECK(peer.find(links::FrameType::grant));
    peer.send(bad, std::vector<std::byte>(std::min<std::size_t>(bad.length, 8)));
    fleet.let_move();
    REQUIRE(collective.has_ended(0));
    CHECK(code_of(collective.result(0)) == EngineErrc::protocol_error);
    CHECK_MESSAGE(mentions(collective.result(0).status.error().detail, says),
                  collective.result(0).status.error().detail);
    CHECK(mentions(collective.result(0).status.error().detail, "rank 1 (w1)"));
    CHECK(peer.is_closed());
  }
}

TEST_CASE("a stranger's memory that lies at odd addresses is reduced all the same") {
  LoopbackFleet fleet(options_of(2, 1));
  auto c = case_of(algorithms::ring, 30000);
  c.dtype = Dtype::f64;
  Collective collective(fleet, c, fleet.now());
  Puppet peer;
  fleet.impersonated = 1;
  collective.start(0);
  peer.hold(fleet.connect_stranger(0, {"w1", 101}));
  peer.send_open(1, 1, open_of(collective.spec(1), 1024), "the same");
  fleet.let_move();
  auto const block = fleet.allocate(1, 8192);
  FrameHeader header;
  header.run = 1;
  header.epoch = 1;
  header.length = 8000;
  peer.refer(header, block.bytes.subspan(3, 8000));
  fleet.let_move();
  CHECK_FALSE(peer.is_closed());
  CHECK_FALSE(collective.has_ended(0));
}
