#include "collectives/model/partners.hpp"

#include <doctest/doctest.h>

#include "collectives/model/model_for_tests.hpp"

using namespace chorus;
using namespace chorus::model;

namespace {

std::uint32_t partners_of(std::string const& name, plan::Spec spec) {
  auto const& algorithm = *algorithms::find(name).value();
  return partners(algorithm, spec_of(algorithm, std::move(spec)));
}

}  // namespace

TEST_CASE("a ring has two neighbours, a cube one in each dimension, and others have all") {
  CHECK(partners_of("ring", {.ranks = 16}) == 2);
  CHECK(partners_of("ring", {.ranks = 2}) == 1);
  CHECK(partners_of("halving_doubling", {.ranks = 16}) == 4);
  CHECK(partners_of("allpairs", {.ranks = 16}) == 15);
  CHECK(partners_of("tree", {.ranks = 3, .arity = 2}) == 2);  // the root's
  CHECK(partners_of("ring", {.ranks = 1}) == 0);
}
