#include "collectives/model/partials.hpp"

#include <doctest/doctest.h>

#include "collectives/model/model_for_tests.hpp"

using namespace chorus;
using namespace chorus::model;

namespace {

std::uint64_t kept_by(std::string const& name, plan::Spec spec, std::uint64_t elements) {
  auto const& algorithm = *algorithms::find(name).value();
  return partial_bytes(algorithm, spec_of(algorithm, std::move(spec)), elements);
}

}  // namespace

TEST_CASE("who adds what several send keeps f32 for it, and who passes every sum on keeps none") {
  CHECK(kept_by("tree", {.ranks = 7, .arity = 2}, 1000) == 4000);
  CHECK(kept_by("tree", {.ranks = 4, .root = 1, .arity = 2}, 1000) == 4000);  // its root's alone
  CHECK(kept_by("allpairs", {.ranks = 4}, 1000) == 1000);                     // its quarter
  CHECK(kept_by("double_tree", {.ranks = 8}, 1000) == 2000);
  CHECK(kept_by("ring", {.ranks = 8}, 1000) == 0);
  CHECK(kept_by("halving_doubling", {.ranks = 8}, 1000) == 0);
}
