#include "collectives/model/select.hpp"

#include <doctest/doctest.h>

#include "collectives/core/errc.hpp"

using namespace chorus;
using namespace chorus::model;

namespace {

Choice chosen(Wish const& wish, std::vector<Locality> const& localities, std::uint64_t bytes) {
  return select(wish, localities, bytes, 1, Constants::defaults()).value();
}

std::error_code error(Wish const& wish, std::size_t ranks) {
  return select(wish, std::vector<Locality>(ranks), 1, 1, Constants::defaults()).error().code;
}

std::vector<Locality> hosts(std::uint32_t count, std::uint32_t workers_each) {
  std::vector<Locality> localities;
  for (std::uint32_t h = 0; h < count; ++h)
    for (std::uint32_t w = 0; w < workers_each; ++w) localities.push_back({"eu", "z", "r", std::to_string(h)});
  return localities;
}

}  // namespace

TEST_CASE("long vectors go round the ring, short ones up and down a tree") {
  for (std::uint32_t p : {8u, 16u, 64u, 1000u}) {
    CHECK(chosen({}, hosts(1, p), 1 << 30).spec.algorithm == "ring");
    CHECK(chosen({}, hosts(p, 1), 1 << 30).spec.algorithm == "ring");
    CHECK(chosen({}, hosts(1, p), 4).spec.algorithm == "tree");
  }
}

TEST_CASE("the choice is the cheapest of what was considered, and the reason names it and the next") {
  auto const choice = chosen({}, hosts(2, 4), 64 << 20);
  REQUIRE(choice.considered.size() == 5);  // centralized, three trees, ring
  for (std::size_t i = 0; i + 1 < choice.considered.size(); ++i)
    CHECK(choice.considered[i].cost.seconds <= choice.considered[i + 1].cost.seconds);
  CHECK(choice.spec == choice.considered[0].spec);
  CHECK(choice.cost.seconds == choice.considered[0].cost.seconds);
  CHECK(choice.reason == "ring: predicted 45.27 ms, next best tree arity 2 root 0: 79.79 ms");
}

TEST_CASE("what was asked for is taken, and the reason says what would have been") {
  auto const forced = chosen({.algorithm = "tree", .arity = 4}, hosts(2, 4), 64 << 20);
  CHECK(forced.spec.algorithm == "tree");
  CHECK(forced.spec.arity == 4);
  CHECK(forced.reason ==
        "tree arity 4 root 0 was asked for: predicted 107.78 ms; auto would have chosen ring: 45.27 ms");
  CHECK(
      chosen({.algorithm = "ring"}, hosts(2, 4), 64 << 20).reason ==
      "ring was asked for: predicted 45.27 ms; auto would have chosen it too, next best tree arity 2 root 0: 79.79 ms");
}

TEST_CASE("above 64 ranks the reason says that formulas decided") {
  CHECK(chosen({}, hosts(1, 65), 4).reason.ends_with("(closed formulas, as there are more than 64 ranks)"));
  CHECK_FALSE(chosen({}, hosts(1, 64), 4).reason.ends_with(")"));
}

TEST_CASE("the root is where most of the others are near, unless the caller fixes it") {
  std::vector<Locality> const workers{
      {"us", "", "", "a"}, {"eu", "", "", "a"}, {"eu", "", "", "b"}, {"eu", "", "", "b"}};
  CHECK(chosen({.algorithm = "centralized"}, workers, 4).spec.root == 2);
  CHECK(chosen({.algorithm = "centralized", .root = 0}, workers, 4).spec.root == 0);
  CHECK(chosen({.algorithm = "ring", .root = 3}, workers, 4).spec.root == 0);  // a ring has none
}

TEST_CASE("trees that would be the same star are considered once") {
  CHECK(chosen({}, hosts(1, 1), 4).considered.size() == 3);
  CHECK(chosen({}, hosts(1, 3), 4).considered.size() == 3);
  CHECK(chosen({}, hosts(1, 4), 4).considered.size() == 4);
  CHECK(chosen({.arity = 3}, hosts(1, 9), 4).considered.size() == 3);
}

TEST_CASE("in place is handed on") {
  for (auto const& candidate : chosen({.in_place = true}, hosts(1, 4), 4).considered) CHECK(candidate.spec.in_place);
}

TEST_CASE("wishes that cannot be granted are refused") {
  CHECK(error({}, 0) == PlanErrc::bad_parameter);
  CHECK(error({}, plan::max_ranks + 1) == PlanErrc::bad_parameter);
  CHECK(error({.algorithm = "rign"}, 4) == PlanErrc::unknown_algorithm);
  CHECK(error({.root = 4}, 4) == PlanErrc::rank_out_of_range);
  CHECK(error({.arity = 0}, 4) == PlanErrc::bad_parameter);
  CHECK(error({.op = Op::gather}, 4) == PlanErrc::unsupported_operation);
  CHECK(error({.op = Op::gather, .algorithm = "ring"}, 4) == PlanErrc::unsupported_operation);
}

TEST_CASE("no elements and a group of one have an answer too") {
  CHECK(chosen({}, hosts(1, 1), 1000).cost.seconds >= 0);
  CHECK(chosen({}, hosts(1, 5), 0).cost.bytes_per_rank == 0);
}
