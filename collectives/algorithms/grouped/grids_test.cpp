// torus_2d, torus_3d, mesh_2d, bcube: steps, bytes, partners, and the shapes that they accept.
#include <doctest/doctest.h>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/traffic_for_tests.hpp"

using namespace chorus;
using algorithms::built, algorithms::refusal, algorithms::steps, algorithms::traffic;
using plan::Rank, plan::Shape, plan::Spec;

namespace {

std::uint32_t twice_steps_along(Shape const& extents) {
  auto sum = std::uint32_t{0};
  for (auto const extent : extents) sum += 2 * (extent - 1);
  return sum;
}

Spec of_shape(Shape const& shape) {
  Spec spec{.ranks = 1, .shape = shape};
  for (auto const extent : shape) spec.ranks *= extent;
  return spec;
}

void sends_least(plan::Algorithm const& algorithm, Spec const& spec) {
  for (Rank rank = 0; rank < spec.ranks; ++rank) {
    auto const program = built(algorithm, spec, rank);
    auto const least = 2 * (program.chunks - program.chunks / spec.ranks);
    REQUIRE(traffic(program).chunks_sent == least);
    REQUIRE(traffic(program).chunks_received == least);
  }
}

}  // namespace

TEST_CASE("torus_2d, torus_3d, mesh_2d and bcube send 2(p-1)/p of the vector with any shape") {
  for (auto const* algorithm : {&algorithms::torus_2d, &algorithms::torus_3d, &algorithms::mesh_2d, &algorithms::bcube})
    for (std::uint32_t p = 2; p <= 64; ++p) {
      sends_least(*algorithm, {.ranks = p});
      if (algorithm->shapes == nullptr) continue;
      for (auto const& shape : algorithm->shapes(p)) {
        sends_least(*algorithm, {.ranks = p, .shape = shape});
        REQUIRE(steps(*algorithm, {.ranks = p, .shape = shape}) == twice_steps_along(shape));
      }
    }
}

TEST_CASE("a grid is as square and a box as cubic as the number of ranks allows") {
  auto const default_steps = [](plan::Algorithm const& algorithm, std::uint32_t p) {
    return steps(algorithm, {.ranks = p});
  };
  CHECK(default_steps(algorithms::torus_2d, 36) == twice_steps_along({6, 6}));
  CHECK(default_steps(algorithms::mesh_2d, 24) == twice_steps_along({4, 6}));
  CHECK(default_steps(algorithms::torus_2d, 13) == twice_steps_along({13}));
  CHECK(default_steps(algorithms::torus_3d, 64) == twice_steps_along({4, 4, 4}));
  CHECK(default_steps(algorithms::torus_3d, 60) == twice_steps_along({3, 4, 5}));
  CHECK(default_steps(algorithms::torus_3d, 22) == twice_steps_along({2, 11}));
}

TEST_CASE("torus_2d: with 3 rows of 4 only a quarter of the vector goes from row to row") {
  auto const program = built(algorithms::torus_2d, {.ranks = 12, .shape = {3, 4}}, 5);
  REQUIRE(program.channels.size() == 4);
  CHECK(program.channel(6)->sends == 2 * 3);  // along its row, 3 chunks each
  CHECK(program.channel(9)->sends == 2 * 2);  // along its column, 1 chunk each
  CHECK(traffic(program).chunks_sent == 2 * 3 * 3 + 2 * 2);
  CHECK(traffic(program).busiest_round == 1);
}

TEST_CASE("torus_3d: the first extent is the slowest") {
  auto const program = built(algorithms::torus_3d, of_shape({2, 3, 4}), 0);
  CHECK(program.channel(1)->sends == 2 * 3);
  CHECK(program.channel(4)->sends == 2 * 2);
  CHECK(program.channel(12)->sends == 2);
  CHECK(traffic(built(algorithms::torus_3d, of_shape({2, 2, 2, 2}), 0)).sent_to ==
        std::vector<Rank>{1, 2, 4, 8, 8, 4, 2, 1});
}

TEST_CASE("mesh_2d sends along rows and columns in the same round") {
  auto const moved = traffic(built(algorithms::mesh_2d, {.ranks = 16, .shape = {4, 4}}, 5));
  CHECK(moved.steps == twice_steps_along({4, 4}));
  CHECK(moved.messages_sent == 2 * moved.steps);
  for (std::size_t i = 0; i < 6; ++i) CHECK(moved.sent_to[i] == (i % 2 == 0 ? 6 : 9));
}

TEST_CASE("bcube: stages have factors of p near the base, or a larger prime factor") {
  auto const default_steps = [](std::uint32_t p, std::uint32_t base) {
    return steps(algorithms::bcube, {.ranks = p, .arity = base});
  };
  CHECK(default_steps(64, 2) == twice_steps_along({2, 2, 2, 2, 2, 2}));
  CHECK(default_steps(64, 4) == twice_steps_along({4, 4, 4}));
  CHECK(default_steps(64, 8) == twice_steps_along({8, 8}));
  CHECK(default_steps(12, 2) == twice_steps_along({2, 2, 3}));
  CHECK(default_steps(24, 4) == twice_steps_along({4, 3, 2}));
  CHECK(default_steps(35, 6) == twice_steps_along({5, 7}));
  CHECK(default_steps(13, 3) == twice_steps_along({13}));
  CHECK(default_steps(13, 100) == twice_steps_along({13}));
  CHECK(traffic(built(algorithms::bcube, {.ranks = 9, .arity = 3}, 4)).sent_to ==
        std::vector<Rank>{5, 3, 7, 1, 7, 1, 5, 3});
}

TEST_CASE("the refusal of a shape that does not fit has an example of one that does") {
  CHECK(refusal(algorithms::torus_2d, {.ranks = 12, .shape = {3, 5}}) ==
        "torus_2d: shape 3,5 does not fit 12 ranks; expected rows,columns whose product is 12, such as 3,4");
  CHECK(refusal(algorithms::mesh_2d, {.ranks = 12, .shape = {2, 2, 3}}) ==
        "mesh_2d: shape 2,2,3 does not fit 12 ranks; expected rows,columns whose product is 12, such as 3,4");
  CHECK(refusal(algorithms::torus_3d, {.ranks = 12, .shape = {0, 4, 3}}) ==
        "torus_3d: shape 0,4,3 does not fit 12 ranks; expected extents whose product is 12, such as 2,2,3");
  CHECK(refusal(algorithms::torus_3d, {.ranks = 4, .shape = {65536, 65536, 65536, 65536, 4}}) != "");
  CHECK(refusal(algorithms::bcube, {.ranks = 12, .arity = 1}) == "bcube: arity, the base, is 1; expected at least 2");
}
