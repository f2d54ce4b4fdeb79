#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/traffic_for_tests.hpp"
#include "collectives/core/errc.hpp"
#include "collectives/plan/program.hpp"
#include "collectives/plan/text/text.hpp"

using namespace chorus;
using algorithms::built, algorithms::traffic;
using plan::build, plan::Opcode, plan::Rank, plan::Spec;

TEST_CASE("algorithms are found by name, and the error for a wrong name lists all names") {
  for (auto const* algorithm : algorithms::all()) CHECK(algorithms::find(algorithm->name).value() == algorithm);
  CHECK(algorithms::find("rign").error().code == PlanErrc::unknown_algorithm);
  auto const detail = algorithms::find("rign").error().detail;
  CHECK(detail == "unknown algorithm 'rign'; did you mean 'ring'?");
  CHECK(algorithms::find("quicksort").error().detail.starts_with("unknown algorithm 'quicksort'; there are mesh, cen"));
}

TEST_CASE("an algorithm has an operation, or its error lists the operations that it has") {
  for (auto const op : all_ops) {
    auto able = 0;
    for (auto const* algorithm : algorithms::all()) {
      Spec const spec{.op = op, .algorithm = std::string(algorithm->name), .ranks = 4};
      auto const program = build(*algorithm, spec, 0);
      if (program.has_value()) {
        ++able;
        continue;
      }
      auto const& error = program.error();
      CHECK(error.code == PlanErrc::unsupported_operation);
      CHECK(error.detail.starts_with(spec.algorithm + " does "));
      CHECK(error.detail.ends_with(", not " + std::string(name(op))));
    }
    CHECK(able >= 3);
  }
}

TEST_CASE("a shape is refused by algorithms without shapes") {
  for (auto const* algorithm : algorithms::all())
    for (auto const op : all_ops) {
      Spec spec{.op = op, .algorithm = std::string(algorithm->name), .ranks = 4};
      if (algorithm->shapes != nullptr || algorithm->check(spec).has_error()) continue;
      spec.shape = {2, 2};
      auto const status = algorithm->check(spec);
      REQUIRE(status.has_error());
      CHECK(status.error().detail == spec.algorithm + " takes no shape, but shape is 2,2");
    }
}

TEST_CASE("a group of one copies its input, and does nothing in place") {
  for (auto const* algorithm : algorithms::all())
    for (auto const op : all_ops) {
      Spec const spec{.op = op, .algorithm = std::string(algorithm->name), .ranks = 1};
      if (algorithm->check(spec).has_error()) continue;
      auto const program = built(*algorithm, spec, 0);
      REQUIRE(program.instructions.size() == 1);
      CHECK(to_string(program.instructions[0]) == "copy input[0] into output[0]");
      CHECK(built(*algorithm, {.op = op, .ranks = 1, .in_place = true}, 0).instructions.empty());
    }
}

TEST_CASE("ring: every rank sends 2(p-1) chunks of p to the next rank and uses no other links") {
  for (std::uint32_t p = 2; p <= 64; ++p)
    for (Rank rank = 0; rank < p; ++rank) {
      auto const program = built(algorithms::ring, {.ranks = p}, rank);
      REQUIRE(program.chunks == p);
      REQUIRE(traffic(program).chunks_sent == 2 * (p - 1));
      REQUIRE(program.channel((rank + 1) % p)->sends == 2 * (p - 1));
      REQUIRE(program.channel((rank + p - 1) % p)->receives == 2 * (p - 1));
    }
}

TEST_CASE("tree: every rank but the root has one parent, and no rank has more children than the arity") {
  for (std::uint32_t p = 2; p <= 64; ++p)
    for (std::uint32_t arity = 1; arity <= 8; ++arity)
      for (Rank root : {Rank{0}, p / 2, p - 1}) {
        auto links = std::size_t{0};
        for (Rank rank = 0; rank < p; ++rank) {
          auto const program = built(algorithms::tree, {.ranks = p, .root = root, .arity = arity}, rank);
          REQUIRE(program.channels.size() <= arity + (rank == root ? 0 : 1));
          REQUIRE(traffic(program).chunks_sent == program.channels.size());
          links += program.channels.size();
        }
        REQUIRE(links == 2 * (p - 1));
      }
}

TEST_CASE("tree: arity p - 1 has the instructions of centralized") {
  Spec const spec{.ranks = 7, .arity = 6};
  for (Rank rank = 0; rank < 7; ++rank)
    CHECK(built(algorithms::tree, spec, rank).instructions == built(algorithms::centralized, spec, rank).instructions);
}

TEST_CASE("the program of one rank of 65536 is built without the other programs and stays small") {
  for (Rank rank : {Rank{0}, Rank{1}, Rank{40'000}, Rank{65'535}}) {
    auto const program = built(algorithms::tree, {.ranks = plan::max_ranks}, rank);
    CHECK(program.instructions.size() <= 6);
    CHECK(program.memory_bytes() < 1024);
  }
  CHECK(built(algorithms::ring, {.ranks = plan::max_ranks}, 7).instructions.size() == 4 * (plan::max_ranks - 1));
  CHECK(built(algorithms::centralized, {.ranks = plan::max_ranks}, 7).instructions.size() == 2);
  CHECK(built(algorithms::tree, {.ranks = plan::max_ranks, .arity = 1}, 7).instructions.size() == 4);
  CHECK(built(algorithms::recursive_doubling, {.ranks = plan::max_ranks}, 7).instructions.size() < 16 * 3);
  CHECK(built(algorithms::binomial, {.op = Op::scatter, .ranks = plan::max_ranks}, 7).instructions.size() == 1);
}

TEST_CASE("docs/explanation/plans.md shows the text of a plan as it is") {
  std::ifstream file(CHORUS_SOURCE_DIR "/docs/explanation/plans.md");
  std::stringstream text;
  text << file.rdbuf();
  CHECK(text.str().find(to_text(built(algorithms::ring, {.ranks = 3}, 0))) != std::string::npos);
}
