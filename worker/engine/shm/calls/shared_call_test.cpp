// The collective suite over shared memory, and what only shared memory can show.
#include <doctest/doctest.h>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/representative.hpp"
#include "worker/engine/shm/calls/shared_steps.hpp"
#include "worker/engine/shm/calls/streaming.hpp"
#include "worker/engine/testing/cases/suite.hpp"
#include "worker/engine/testing/shared_fleet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;

namespace {

std::unique_ptr<Fleet> in_arenas(std::uint32_t ranks) {
  return std::make_unique<SharedFleet>(SharedFleetOptions{.ranks = ranks, .seed = ranks});
}

std::unique_ptr<Fleet> outside(std::uint32_t ranks) {
  return std::make_unique<SharedFleet>(SharedFleetOptions{.ranks = ranks, .in_arena = false, .seed = ranks});
}

std::unique_ptr<Fleet> with_large_records(std::uint32_t ranks) {
  return std::make_unique<SharedFleet>(SharedFleetOptions{.ranks = ranks, .block_bytes = 8192, .seed = ranks});
}

struct Compiled {
  Compiled(plan::Algorithm const& algorithm, plan::Spec const& spec, plan::Rank rank, Dtype dtype = Dtype::f32)
      : program(plan::build(algorithm, spec, rank).value()),
        addresses(program, plan::Sizes{spec.ranks * 100, {}, {}}, element_bytes(dtype)),
        steps(to_steps(program, addresses, dtype)) {}
  plan::Program program;
  Addresses addresses;
  std::vector<Step> steps;
};

plan::Spec all_reduce_by(char const* algorithm, std::uint32_t ranks, bool in_place = false) {
  return {.op = Op::all_reduce, .algorithm = algorithm, .ranks = ranks, .in_place = in_place};
}

}  // namespace

TEST_CASE("in shared arenas, every algorithm is exact for every group, count and operation" *
          doctest::test_suite("exhaustive")) {
  check_every_shape(in_arenas, Depth::telling);
}

TEST_CASE("from memory of one's own, every algorithm is exact for every group, count and operation" *
          doctest::test_suite("exhaustive")) {
  check_every_shape(outside, Depth::few);
}

TEST_CASE("with payloads inside of records, every algorithm is exact for every group, count and operation" *
          doctest::test_suite("exhaustive")) {
  check_every_shape(with_large_records, Depth::few);
}

TEST_CASE("over shared memory, a hundred runs in a row") { check_hundred_in_a_row(in_arenas); }

TEST_CASE("over shared memory, ranks may start in any order, long after the others") { check_late_starters(in_arenas); }

TEST_CASE("an owner of allpairs reads each member's chunk once and puts the sum where each member wants it") {
  for (bool const in_place : {false, true}) {
    CAPTURE(in_place);
    Compiled const c(algorithms::allpairs, all_reduce_by("allpairs", 4, in_place), 2);
    auto const folds =
        std::count_if(c.steps.begin(), c.steps.end(), [](Step const& step) { return step.operands.size() == 4; });
    CHECK(folds == 1);
    for (auto const& step : c.steps) {
      if (step.operands.size() != 4) continue;
      CHECK(step.sends.size() == 3);
      CHECK(step.destinations.size() == 1);
      CHECK(step.destinations[0].pieces[0].buffer == plan::Buffer::output);
      CHECK(step.is_final);
    }
    auto const landing = std::count_if(c.steps.begin(), c.steps.end(), [](Step const& step) { return step.may_land; });
    CHECK(landing == 3);
  }
}

TEST_CASE("a member of mesh reduces all vectors in one pass") {
  for (auto const dtype : {Dtype::f32, Dtype::f16}) {
    Compiled const c(algorithms::mesh, all_reduce_by("mesh", 5), 3, dtype);
    auto const& last = c.steps.back();
    CHECK(last.operands.size() == 5);
    CHECK(last.destinations.size() == 1);
    CHECK(last.steps == 5);
  }
}

// A kept partial sum is as long as the range that it sums. Exceptions: chains of multi_tree that cross each other, and
// grouped_allpairs, whose partial sums are encoded: auto takes it for codes between groups alone, which f16 has not.
TEST_CASE("over shared memory plans keep no partial sum of halves from one step to another") {
  for (auto const op : {Op::all_reduce, Op::reduce, Op::reduce_scatter})
    for (auto const* algorithm : algorithms::all_for(op))
      for (std::uint32_t ranks = 2; ranks <= 12; ++ranks)
        for (bool const in_place : {false, true})
          for (plan::Rank rank = 0; rank < ranks; ++rank) {
            plan::Spec const spec{
                .op = op, .algorithm = std::string(algorithm->name), .ranks = ranks, .in_place = in_place};
            // the algorithm does not fit this many ranks
            if (plan::build(*algorithm, spec, rank).has_error()) continue;
            if (algorithm->name == "multi_tree" && (ranks == 10 || ranks == 11)) continue;
            if (algorithm->coded_from != nullptr) continue;
            CAPTURE(algorithm->name);
            CAPTURE(ranks);
            CAPTURE(rank);
            for (auto const& step : Compiled(*algorithm, spec, rank, Dtype::f16).steps)
              CHECK(std::ranges::none_of(step.destinations, &Range::wide));
          }
}

TEST_CASE("vectors that are written past the caches may begin at any byte, in the arena and elsewhere") {
  constexpr std::uint64_t elements = (1u << 20) + 3;
  static_assert(streams_results(elements * 4, 1, 2));
  for (bool const in_arena : {false, true})
    for (auto const* algorithm : {&algorithms::mesh, &algorithms::allpairs}) {
      CAPTURE(in_arena);
      SharedFleet fleet({.ranks = 2, .in_arena = false, .slot_bytes = 1u << 20});
      Collective collective(fleet, {.algorithm = algorithm, .dtype = Dtype::f32, .elements = elements});
      struct Memory {
        std::vector<std::byte> own;
        std::span<std::byte> input, output, wanted;
      };
      std::vector<Memory> memories(2);
      for (plan::Rank rank = 0; rank < 2; ++rank) {
        auto& [own, input, output, wanted] = memories[rank];
        auto& spec = collective.spec(rank);
        auto const bytes = spec.input.size();
        if (!in_arena) own.resize(2 * bytes + 64);
        auto const all = in_arena ? fleet.arena(rank).allocate(2 * bytes + 64).value() : std::span(own);
        input = all.subspan(1, bytes);
        output = all.subspan(bytes + 2, bytes);
        wanted = spec.output;
        std::copy(spec.input.begin(), spec.input.end(), input.begin());
        spec.input = input;
        spec.output = output;
      }
      REQUIRE(collective.run());
      for (auto const& memory : memories) std::copy(memory.output.begin(), memory.output.end(), memory.wanted.begin());
      CHECK(collective.wrong() == "");
    }
}

TEST_CASE("a step that writes a part past the caches as a trial gives the right result") {
  for (bool const in_place : {false, true})
    for (std::uint64_t const elements : {70'001, 262'144}) {
      SharedFleet fleet({.ranks = 4, .in_arena = true});
      Collective collective(
          fleet, {.algorithm = &algorithms::allpairs, .dtype = Dtype::f32, .elements = elements, .in_place = in_place});
      REQUIRE(collective.run());  // the first step of a kind of call is a trial
      CHECK(collective.wrong() == "");
    }
}

TEST_CASE("a step streams its results when they are large, or when all ranks' together are") {
  constexpr std::uint64_t MiB = 1u << 20;
  CHECK(streams_results(4 * MiB, 1, 2));
  CHECK_FALSE(streams_results(4 * MiB - 1, 1, 2));
  CHECK(streams_results(2 * MiB, 2, 4));  // an owner of allpairs, for all ranks that want its part
  CHECK_FALSE(streams_results(2 * MiB - 1, 2, 4));
  CHECK(streams_results(256 * 1024, 8, 8));
  CHECK_FALSE(streams_results(256 * 1024 - 8, 8, 8));
  CHECK_FALSE(streams_results(0, 8, 8));
}

TEST_CASE("both ends of a message meet in the same round") {
  for (auto const* algorithm : algorithms::all())
    for (auto const op : all_ops)
      for (std::uint32_t ranks : {2u, 3u, 5u, 8u, 12u})
        for (auto const& spec : algorithms::representative_specs(*algorithm, op, ranks)) {
          std::vector<plan::Program> programs;
          for (plan::Rank rank = 0; rank < ranks; ++rank)
            programs.push_back(plan::build(*algorithm, spec, rank).value());
          auto const rounds_of = [&](plan::Rank rank, plan::Rank peer, bool sends) {
            std::vector<std::uint32_t> rounds;
            auto const& program = programs[rank];
            for (std::uint32_t round = 0; round + 1 < program.round_begin.size(); ++round)
              for (auto i = program.round_begin[round]; i < program.round_begin[round + 1]; ++i) {
                auto const& each = program.instructions[i];
                bool const counts = sends ? each.op == plan::Opcode::send : each.receives();
                if (counts && each.peer == peer) rounds.push_back(round);
              }
            return rounds;
          };
          for (plan::Rank from = 0; from < ranks; ++from)
            for (plan::Rank to = 0; to < ranks; ++to)
              if (from != to) REQUIRE(rounds_of(from, to, true) == rounds_of(to, from, false));
        }
}
