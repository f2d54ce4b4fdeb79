#include "collectives/plan/spec.hpp"

#include <doctest/doctest.h>

#include "collectives/core/errc.hpp"

using namespace chorus;
using namespace chorus::plan;

TEST_CASE("the text and the hash of a spec are the same in every build") {
  Spec const spec{.algorithm = "tree", .ranks = 8, .root = 3, .arity = 4};
  CHECK(to_string(spec) == "all_reduce tree ranks=8 root=3 arity=4 out_of_place");
  CHECK(hash(spec) == 0xa79caf68bee2ce42);
}

TEST_CASE("every field of a spec changes its hash") {
  Spec const spec{.algorithm = "tree", .ranks = 8};
  auto const differs = [&](auto change) {
    auto other = spec;
    change(other);
    return hash(other) != hash(spec);
  };
  CHECK(differs([](Spec& s) { s.op = Op::reduce; }));
  CHECK(differs([](Spec& s) { s.algorithm = "ring"; }));
  CHECK(differs([](Spec& s) { s.ranks = 9; }));
  CHECK(differs([](Spec& s) { s.root = 1; }));
  CHECK(differs([](Spec& s) { s.arity = 3; }));
  CHECK(differs([](Spec& s) { s.in_place = true; }));
  CHECK(differs([](Spec& s) { s.shape = {2, 4}; }));
  CHECK(differs([](Spec& s) { s.by_position = {1, 0, 2, 3, 4, 5, 6, 7}; }));
}

TEST_CASE("the refusal of a spec that cannot be planned names the wrong field") {
  auto const code = [](Spec const& spec) { return check(spec).error().code; };
  CHECK(check({.algorithm = "ring", .ranks = max_ranks, .root = max_ranks - 1}).has_value());
  CHECK(code({.algorithm = "ring", .ranks = 0}) == PlanErrc::bad_parameter);
  CHECK(code({.algorithm = "ring", .ranks = max_ranks + 1}) == PlanErrc::bad_parameter);
  CHECK(code({.algorithm = "ring", .ranks = 4, .root = 4}) == PlanErrc::rank_out_of_range);
  CHECK(code({.algorithm = "ring", .ranks = 4, .arity = 0}) == PlanErrc::bad_parameter);
  CHECK(code({.algorithm = "", .ranks = 4}) == PlanErrc::unknown_algorithm);
  CHECK(code({.algorithm = "ring ranks=5", .ranks = 4}) == PlanErrc::unknown_algorithm);
  CHECK(check({.algorithm = "ring", .ranks = 4, .root = 7}).error().detail == "root is 7; expected 0..3");
}
