// double_tree, multi_tree, hierarchical: steps, bytes, places of ranks in the trees, and the shapes that they accept.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/traffic_for_tests.hpp"

using namespace chorus;
using algorithms::built, algorithms::refusal, algorithms::steps, algorithms::traffic;
using plan::Opcode, plan::Program, plan::Rank, plan::Shape, plan::Spec;

namespace {

std::uint32_t floor_log2(std::uint32_t n) { return static_cast<std::uint32_t>(std::bit_width(n)) - 1; }

// Returns the trees in which a rank has children: the chunks that it reduces or, in a broadcast, passes on.
std::set<std::uint32_t> inner_of(Program const& program) {
  std::set<std::uint32_t> trees;
  for (auto const& instruction : program.instructions)
    if (instruction.op == (program.spec.op == Op::broadcast ? Opcode::send : Opcode::recv_reduce))
      trees.insert(instruction.op == Opcode::send ? instruction.src_chunk : instruction.dst_chunk);
  return trees;
}

}  // namespace

TEST_CASE("double_tree: no rank is an inner node of both trees") {
  for (auto const op : {Op::all_reduce, Op::reduce, Op::broadcast})
    for (std::uint32_t p = 2; p <= 64; ++p)
      for (Rank root : {Rank{0}, p / 2, p - 1})
        for (Rank rank = 0; rank < p; ++rank) {
          Spec const spec{.op = op, .ranks = p, .root = is_rooted(op) ? root : 0};
          bool const is_above_both = is_rooted(op) && rank == root;
          REQUIRE(inner_of(built(algorithms::double_tree, spec, rank)).size() <= (is_above_both ? 2u : 1u));
        }
}

TEST_CASE("double_tree: 4 floor(log2 p) steps, at most 2n per rank, and 2(p-1) messages for each half") {
  for (std::uint32_t p = 2; p <= 64; ++p) {
    Spec const spec{.ranks = p};
    REQUIRE(algorithms::double_tree.rounds(spec, 0) == 4 * floor_log2(p));
    auto sent = std::uint64_t{0};
    for (Rank rank = 0; rank < p; ++rank) {
      auto const moved = traffic(built(algorithms::double_tree, spec, rank));
      REQUIRE(moved.chunks_sent <= 4);
      REQUIRE(moved.chunks_received <= 4);
      sent += moved.chunks_sent;
    }
    REQUIRE(sent == 2 * 2 * (p - 1));
  }
}

TEST_CASE("double_tree: rooted operations take 2 floor(log2 (p-1)) + 2 steps and send at most n per rank") {
  for (auto const op : {Op::reduce, Op::broadcast})
    for (std::uint32_t p = 2; p <= 64; ++p)
      for (Rank rank = 0; rank < p; ++rank) {
        Spec const spec{.op = op, .ranks = p, .root = p / 3};
        REQUIRE(algorithms::double_tree.rounds(spec, 0) == 2 * floor_log2(p - 1) + 2);
        auto const moved = traffic(built(algorithms::double_tree, spec, rank));
        REQUIRE(moved.chunks_sent <= 2);
        REQUIRE(moved.chunks_received <= 2);
      }
}

TEST_CASE("multi_tree: the shape has the parents of each tree, and each tree has a slice") {
  // A star at rank 2 and a chain that ends in rank 0.
  Spec const spec{.ranks = 4, .shape = {2, 2, 2, 2, 0, 0, 1, 2}};
  CHECK(built(algorithms::multi_tree, spec, 0).chunks == 2);
  CHECK(inner_of(built(algorithms::multi_tree, spec, 2)) == std::set<std::uint32_t>{0, 1});
  CHECK(inner_of(built(algorithms::multi_tree, spec, 1)) == std::set<std::uint32_t>{1});
  CHECK(inner_of(built(algorithms::multi_tree, spec, 3)).empty());
  CHECK(traffic(built(algorithms::multi_tree, spec, 3)).sent_to == std::vector<Rank>{2, 2});
  CHECK(steps(algorithms::multi_tree, spec) == 2 * 3);
}

TEST_CASE("multi_tree: the default is up to eight binary trees with roots spread over the ranks") {
  for (std::uint32_t p = 2; p <= 64; ++p) {
    auto const trees = std::min(p, 8u);
    std::set<Rank> roots;
    auto sent = std::uint64_t{0};
    for (Rank rank = 0; rank < p; ++rank) {
      auto const program = built(algorithms::multi_tree, {.ranks = p}, rank);
      REQUIRE(program.chunks == trees);
      sent += traffic(program).chunks_sent;
      for (auto const& instruction : program.instructions)
        if (instruction.is_final()) roots.insert(rank);
    }
    REQUIRE(roots.size() == trees);
    REQUIRE(sent == 2 * (p - 1) * trees);
    REQUIRE(steps(algorithms::multi_tree, {.ranks = p}) == 2 * floor_log2(p));
  }
}

TEST_CASE("multi_tree: the refusal of parents that are no tree names the tree and the rank") {
  auto const wrong = [](Shape shape) {
    return refusal(algorithms::multi_tree, {.ranks = 4, .shape = std::move(shape)});
  };
  auto const is_said = [&](Shape const& shape, std::string const& what) {
    CHECK_MESSAGE(wrong(shape).ends_with(what), wrong(shape));
  };
  is_said({0, 0, 0}, "a multiple of 4 numbers: for every tree the parents of all ranks, a root its own");
  is_said(Shape(65 * 4, 0), "expected at most 64 trees");
  is_said({0, 0, 0, 4}, "but in tree 0 the parent of rank 3 is 4");
  is_said({0, 1, 0, 0}, "but in tree 0 2 ranks are roots, their own parents");
  is_said({0, 0, 0, 0, 1, 2, 3, 0}, "but in tree 1 0 ranks are roots, their own parents");
  is_said({0, 2, 1, 0}, "but in tree 0 rank 1 does not come to the root within 64 levels");
  CHECK(wrong({0, 0, 1, 2}) == "");
  CHECK(wrong(Shape(64 * 4, 0)) == "");
  Shape chain(66);
  for (Rank rank = 1; rank < 66; ++rank) chain[rank] = rank - 1;
  CHECK(refusal(algorithms::multi_tree, {.ranks = 66, .shape = chain})
            .ends_with("rank 65 does not come to the root within 64 levels"));
}

TEST_CASE("hierarchical: only leaders exchange with other groups, around a ring") {
  Spec const spec{.ranks = 10, .arity = 3, .shape = {4, 4, 2}};
  auto const group = [](Rank rank) { return std::min(rank / 4, 2u); };
  for (Rank rank = 0; rank < 10; ++rank) {
    bool const is_leader = rank % 4 == 0;
    for (auto const& channel : built(algorithms::hierarchical, spec, rank).channels)
      CHECK((group(channel.peer) == group(rank) || (is_leader && channel.peer % 4 == 0)));
  }
  auto const leader = built(algorithms::hierarchical, spec, 4);
  CHECK(leader.chunks == 3);
  CHECK(leader.channel(8)->sends == 2 * 2);
  CHECK(leader.channel(0)->receives == 2 * 2);
  CHECK(leader.channel(7)->sends == 1);
  CHECK(traffic(leader).chunks_sent == 3 * 3 + 4);
}

TEST_CASE("hierarchical: 2 k steps per level and 2(g-1) between groups, and about sqrt(p) groups by default") {
  CHECK(steps(algorithms::hierarchical, {.ranks = 10, .arity = 3, .shape = {4, 4, 2}}) == 2 * 3 + 2 * 2);
  CHECK(steps(algorithms::hierarchical, {.ranks = 64}) == 2 * (2 + 2 + 1) + 2 * 7);
  CHECK(algorithms::hierarchical.rounds({.ranks = 64}, 0) == 2 * 2 * 3 + 2 * 7);
  CHECK(built(algorithms::hierarchical, {.ranks = 60}, 0).chunks == 7);
  CHECK(steps(algorithms::hierarchical, {.ranks = 5, .shape = {1, 1, 1, 1, 1}}) == 2 * 4);
  CHECK(steps(algorithms::hierarchical, {.ranks = 5, .arity = 1, .shape = {5}}) == 2 * 4);
}

TEST_CASE("hierarchical: the refusal of groups that do not sum to the ranks has an example of groups that do") {
  CHECK(refusal(algorithms::hierarchical, {.ranks = 10, .shape = {4, 4}}) ==
        "hierarchical: shape 4,4 does not fit 10 ranks; expected sizes of groups, none of them 0, whose sum is 10, "
        "such as "
        "4,3,3");
  CHECK(refusal(algorithms::hierarchical, {.ranks = 10, .shape = {10, 0}}) != "");
}

TEST_CASE("double_tree and multi_tree: the program of one rank of 65536 is small") {
  for (auto const* algorithm : {&algorithms::double_tree, &algorithms::multi_tree})
    for (Rank rank : {Rank{0}, Rank{40'000}, Rank{65'535}})
      CHECK(built(*algorithm, {.ranks = plan::max_ranks}, rank).memory_bytes() < 4096);
}
