#include "collectives/model/extra_memory.hpp"

#include <doctest/doctest.h>

#include "collectives/algorithms/representative.hpp"
#include "collectives/model/model_for_tests.hpp"

using namespace chorus;
using namespace chorus::model;

namespace {

std::uint64_t beyond_what_all_have(std::string const& name, plan::Spec spec, std::uint64_t bytes) {
  auto const& algorithm = *algorithms::find(name).value();
  return extra_bytes(algorithm, spec_of(algorithm, std::move(spec)), bytes);
}

}  // namespace

TEST_CASE("every plan needs a vector and its sum; some plans need one vector more") {
  CHECK(beyond_what_all_have("ring", {.ranks = 8}, 1000) == 0);
  CHECK(beyond_what_all_have("tree", {.op = Op::reduce, .ranks = 7}, 1000) == 0);  // the sum of an inner rank
  CHECK(beyond_what_all_have("recursive_doubling", {.ranks = 8}, 1000) == 1000);
  CHECK(beyond_what_all_have("mesh", {.ranks = 3, .in_place = true}, 1000) == 0);
}

TEST_CASE("no plan needs more than extra_vectors_max vectors more") {
  for (auto const* algorithm : algorithms::all())
    for (auto const op : all_ops)
      for (std::uint32_t const ranks : {1, 2, 3, 8, 13, 64, 100})
        for (auto const& spec : algorithms::representative_specs(*algorithm, op, ranks))
          CHECK(extra_bytes(*algorithm, spec, 1000) <= extra_vectors_max * 1000);
}

TEST_CASE("a rank that passes on blocks of other ranks needs memory for them") {
  CHECK(beyond_what_all_have("centralized", {.op = Op::gather, .ranks = 8}, 800) == 0);
  CHECK(beyond_what_all_have("chain", {.op = Op::gather, .ranks = 8}, 800) == 700);
  CHECK(beyond_what_all_have("binomial", {.op = Op::scatter, .ranks = 64}, 6400) >= 3000);
  CHECK(beyond_what_all_have("binomial", {.op = Op::gather, .ranks = 1024, .root = 700}, 1 << 20) >= 1 << 18);
}
