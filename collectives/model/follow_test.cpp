#include "collectives/model/follow_for_tests.hpp"

#include <doctest/doctest.h>

#include "collectives/model/model_for_tests.hpp"

using namespace chorus;
using namespace chorus::model;
using plan::Spec;

namespace {

double microseconds(plan::Algorithm const& algorithm, Spec const& spec, std::uint64_t bytes,
                    std::vector<Locality> localities = {}, Constants const& constants = round_numbers()) {
  localities.resize(spec.ranks);
  Network const network(localities, constants);
  return follow(programs_of(algorithm, spec), network, bytes, 1).seconds * 1e6;
}

}  // namespace

TEST_CASE("a ring costs 2(p-1) latencies and 2(p-1)/p of the bytes, half of them reduced") {
  CHECK(microseconds(algorithms::ring, {.ranks = 4}, 0) == approximately(6));
  CHECK(microseconds(algorithms::ring, {.ranks = 4}, 4000) == approximately(3 * (1 + 1 + 0.5) + 3 * (1 + 1)));
}

TEST_CASE("the root of centralized serves messages one after the other, in both directions") {
  CHECK(microseconds(algorithms::centralized, {.ranks = 4}, 0) == approximately(6));
  CHECK(microseconds(algorithms::centralized, {.ranks = 4}, 1000) == approximately(3 * 2.5 + 3 * 2));
}

TEST_CASE("a message goes up and down a tree level by level") {
  CHECK(microseconds(algorithms::tree, {.ranks = 7, .arity = 2}, 0) == approximately(8));
  CHECK(microseconds(algorithms::tree, {.ranks = 4, .arity = 1}, 1000) == approximately(3 * 2.5 + 3 * 2));
}

TEST_CASE("segments flow through a chain without waiting for each other") {
  auto constants = round_numbers();
  Spec const chain{.ranks = 9, .arity = 1};
  auto const whole = microseconds(algorithms::tree, chain, 160'000);
  constants.segment_bytes = 10'000;
  auto const in_segments = microseconds(algorithms::tree, chain, 160'000, {}, constants);
  CHECK(whole > 16 * 160);
  CHECK(in_segments < whole / 3);
  CHECK(in_segments > 2 * 160);
}

TEST_CASE("a slow link delays the whole ring, and ranks ordered by locality use it less") {
  std::vector<Locality> near{{"", "", "", "a"}, {"", "", "", "a"}, {"", "", "", "b"}, {"", "", "", "b"}};
  std::vector<Locality> const scattered{near[0], near[2], near[1], near[3]};
  auto const at_home = microseconds(algorithms::ring, {.ranks = 4}, 4000);
  CHECK(microseconds(algorithms::ring, {.ranks = 4}, 4000, near) > 5 * at_home);
  CHECK(microseconds(algorithms::tree, {.ranks = 4, .arity = 1}, 4000, near) <
        microseconds(algorithms::tree, {.ranks = 4, .arity = 1}, 4000, scattered));
}
