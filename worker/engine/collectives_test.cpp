#include <doctest/doctest.h>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/representative.hpp"
#include "worker/engine/testing/cases/suite.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;

namespace {

std::unique_ptr<Fleet> adversarial(std::uint32_t ranks) {
  FleetOptions options;
  options.ranks = ranks;
  options.network = {ranks, 50000, 20000};  // pipes that fill up, chunks that cut headers
  options.eager_bytes = 2048;
  options.partials_bytes = 1024;  // partial sums: 512 bytes of the vector, in which segments of 96 bytes end in two
                                  // pieces
  return std::make_unique<LoopbackFleet>(options);
}

std::unique_ptr<Fleet> with_checksums(std::uint32_t ranks) {
  FleetOptions options;
  options.ranks = ranks;
  options.network = {ranks, 50000, 20000, links::Framing::checksummed};
  options.eager_bytes = 2048;
  return std::make_unique<LoopbackFleet>(options);
}

}  // namespace

TEST_CASE("over loopback, every algorithm is exact for every group, count, segment size and operation" *
          doctest::test_suite("exhaustive")) {
  check_every_shape(adversarial, Depth::every);
}

TEST_CASE("partial sums of halves are kept for a few segments of the vector at a time, by every plan that has any" *
          doctest::test_suite("exhaustive")) {
  for (std::uint32_t const ranks : {2u, 3u, 5u, 8u, 9u}) {
    auto const fleet = adversarial(ranks);
    std::uint64_t run = 0;
    for (auto const op : {Op::all_reduce, Op::reduce, Op::reduce_scatter})
      for (auto const* algorithm : algorithms::all_for(op))
        for (auto const& spec : algorithms::representative_specs(*algorithm, op, ranks)) {
          Case c{.algorithm = algorithm, .op = op, .root = spec.root, .arity = spec.arity, .shape = spec.shape};
          c.in_place = spec.in_place;
          c.dtype = ++run % 2 == 0 ? Dtype::f16 : Dtype::bf16;
          c.elements = 144 * 9 * 5;  // a multiple of the number of chunks
          c.segment_bytes = 96;
          c.run = run;
          Collective collective(*fleet, c);
          REQUIRE_MESSAGE(collective.run(), to_string(c), " of ", ranks, " does not end");
          REQUIRE_MESSAGE(collective.wrong().empty(), collective.wrong());
        }
  }
}

TEST_CASE("with checksums, every algorithm is exact as well" * doctest::test_suite("exhaustive")) {
  check_every_shape(with_checksums, Depth::few);
}

TEST_CASE("over loopback, a hundred runs in a row use the same links") { check_hundred_in_a_row(adversarial); }

TEST_CASE("over loopback, several runs at once share the links") { check_several_at_once(adversarial); }

TEST_CASE("a rank may start at any moment, also in the middle of a frame that came too early") {
  for (auto const* algorithm : algorithms::all_for(Op::all_reduce))
    for (std::size_t steps = 0; steps < 120; ++steps) {
      FleetOptions options;
      options.ranks = 3;
      options.network = {steps + 1, 5000, 100};
      LoopbackFleet fleet(options);
      Case c;
      c.algorithm = algorithm;
      c.elements = 300;
      Collective collective(fleet, c, fleet.now());
      for (plan::Rank rank : {1u, 2u}) collective.start(rank);
      fleet.let_move(steps);
      collective.start(0);
      REQUIRE(collective.finish());
      auto const wrong = collective.wrong();
      REQUIRE_MESSAGE(wrong.empty(), wrong);
    }
}

TEST_CASE("over loopback, ranks may start in any order, long after the others") { check_late_starters(adversarial); }

TEST_CASE("a run of a known kind does what the first one did, in other memory, also after a failed one") {
  for (auto const* algorithm : algorithms::all_for(Op::all_reduce)) {
    LoopbackFleet fleet(FleetOptions{.ranks = 4, .network = {.seed = 5, .chunk_bytes = 200}});
    auto const call = [&](std::uint64_t run) {
      Case c{.algorithm = algorithm, .elements = 1000};
      c.run = run;
      return Collective(fleet, c, fleet.now());
    };
    auto first = call(1);
    REQUIRE(first.run());
    auto second = call(2);
    REQUIRE(second.run());
    REQUIRE_MESSAGE(second.wrong().empty(), second.wrong());
    for (plan::Rank rank = 0; rank < 4; ++rank) {
      CHECK(second.result(rank).statistics.bytes_sent == first.result(rank).statistics.bytes_sent);
      CHECK(second.result(rank).statistics.bytes_received == first.result(rank).statistics.bytes_received);
      CHECK(second.result(rank).statistics.steps == first.result(rank).statistics.steps);
      for (auto const& step : second.result(rank).trace->instructions) CHECK(step.done_ns != never_ns);
    }
    auto third = call(3);
    third.start();
    fleet.let_move(7);
    fleet.engine(2).abort(3, Error(EngineErrc::aborted, "not this one"));
    REQUIRE(third.finish());
    CHECK(third.result(2).status.has_error());
    auto fourth = call(4);
    REQUIRE(fourth.run());
    CHECK_MESSAGE(fourth.wrong().empty(), fourth.wrong());
  }
}
