#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/traffic_for_tests.hpp"
#include "collectives/core/errc.hpp"
#include "collectives/plan/program.hpp"
#include "collectives/plan/text.hpp"

using namespace chorus;
using algorithms::built, algorithms::traffic;
using plan::build, plan::Opcode, plan::Rank, plan::Spec;

TEST_CASE("algorithms are found by name, and a wrong name is answered with the right ones") {
  for (auto const* algorithm : algorithms::all()) CHECK(algorithms::find(algorithm->name).value() == algorithm);
  CHECK(algorithms::find("rign").error().code == PlanErrc::unknown_algorithm);
  CHECK(algorithms::find("rign").error().detail ==
        "there is no algorithm 'rign'; there are mesh, centralized, tree, double_tree, multi_tree, ring_naive, ring, "
        "halving_doubling, swing, bcube, allpairs, hierarchical, torus_2d, torus_3d, mesh_2d");
}

TEST_CASE("every algorithm does all_reduce, and refuses what it cannot do with a list of what it can") {
  for (auto const* algorithm : algorithms::all()) {
    auto const refused = algorithms::refusal(*algorithm, {.op = Op::all_to_all, .ranks = 4});
    CHECK(refused.starts_with(std::string(algorithm->name) + " does all_reduce"));
    CHECK(refused.ends_with(", not all_to_all"));
    CHECK(algorithms::refusal(*algorithm, {.op = Op::all_reduce, .ranks = 4}) == "");
  }
  CHECK(algorithms::refusal(algorithms::double_tree, {.op = Op::gather, .ranks = 4}) ==
        "double_tree does all_reduce, reduce and broadcast, not gather");
}

TEST_CASE("a shape is refused by those that take none") {
  for (auto const* algorithm : algorithms::all())
    if (algorithm->shapes == nullptr)
      CHECK(algorithms::refusal(*algorithm, {.ranks = 4, .shape = {2, 2}}) ==
            std::string(algorithm->name) + " takes no shape");
}

TEST_CASE("a group of one copies its input, and does nothing in place") {
  for (auto const* algorithm : algorithms::all()) {
    auto const program = built(*algorithm, {.ranks = 1}, 0);
    REQUIRE(program.instructions.size() == 1);
    CHECK(to_string(program.instructions[0]) == "copy input[0] into output[0]");
    CHECK(built(*algorithm, {.ranks = 1, .in_place = true}, 0).instructions.empty());
  }
}

TEST_CASE("in a ring every rank sends 2(p-1) chunks of p to the next and talks to nobody but its neighbours") {
  for (std::uint32_t p = 2; p <= 64; ++p)
    for (Rank rank = 0; rank < p; ++rank) {
      auto const program = built(algorithms::ring, {.ranks = p}, rank);
      REQUIRE(program.chunks == p);
      REQUIRE(traffic(program).chunks_sent == 2 * (p - 1));
      REQUIRE(program.channel((rank + 1) % p)->sends == 2 * (p - 1));
      REQUIRE(program.channel((rank + p - 1) % p)->receives == 2 * (p - 1));
    }
}

TEST_CASE("in a tree every rank but the root has one parent, and nobody more children than the arity") {
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

TEST_CASE("a tree of p - 1 children is the star of centralized, from the first rank") {
  Spec const spec{.ranks = 7, .arity = 6};
  for (Rank rank = 0; rank < 7; ++rank)
    CHECK(built(algorithms::tree, spec, rank).instructions == built(algorithms::centralized, spec, rank).instructions);
}

TEST_CASE("at the root of centralized contributions are added by ascending rank") {
  std::vector<Rank> order;
  for (auto const& instruction : built(algorithms::centralized, {.ranks = 5, .root = 2}, 2).instructions)
    if (instruction.op == Opcode::recv_reduce) order.push_back(instruction.peer);
  CHECK(order == std::vector<Rank>{0, 1, 3, 4});
}

TEST_CASE("one rank's share of 65536 is built without the others' and stays small") {
  for (Rank rank : {Rank{0}, Rank{1}, Rank{40'000}, Rank{65'535}}) {
    auto const program = built(algorithms::tree, {.ranks = plan::max_ranks}, rank);
    CHECK(program.instructions.size() <= 6);
    CHECK(program.memory_bytes() < 1024);
  }
  CHECK(built(algorithms::ring, {.ranks = plan::max_ranks}, 7).instructions.size() == 4 * (plan::max_ranks - 1));
  CHECK(built(algorithms::centralized, {.ranks = plan::max_ranks}, 7).instructions.size() == 2);
  CHECK(built(algorithms::tree, {.ranks = plan::max_ranks, .arity = 1}, 7).instructions.size() == 4);
}

TEST_CASE("documentation shows the plans as they are") {
  std::ifstream file(CHORUS_SOURCE_DIR "/docs/plans.md");
  std::stringstream text;
  text << file.rdbuf();
  CHECK(text.str().find(to_text(built(algorithms::ring, {.ranks = 3}, 0))) != std::string::npos);
  for (auto const* algorithm : algorithms::all()) CHECK(text.str().find(algorithm->summary) != std::string::npos);
}
