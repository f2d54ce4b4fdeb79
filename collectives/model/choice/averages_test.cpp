#include "collectives/model/choice/averages.hpp"

#include <doctest/doctest.h>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/model/choice/select.hpp"

using namespace chorus;
using namespace chorus::model;

TEST_CASE("a large average is one of f32 or f64 whose bytes count for more than latencies") {
  CHECK(is_large_average(Op::all_reduce, ReduceOp::avg, Dtype::f32, 1 << 20));
  CHECK(is_large_average(Op::all_reduce, ReduceOp::avg, Dtype::f64, 1 << 20));
  CHECK_FALSE(is_large_average(Op::all_reduce, ReduceOp::avg, Dtype::f32, 4096));
  CHECK_FALSE(is_large_average(Op::all_reduce, ReduceOp::sum, Dtype::f32, 1 << 20));
  CHECK_FALSE(is_large_average(Op::broadcast, ReduceOp::avg, Dtype::f32, 1 << 20));
  // Others are carried in wider numbers by nearly every algorithm.
  CHECK_FALSE(is_large_average(Op::all_reduce, ReduceOp::avg, Dtype::f16, 1 << 20));
  CHECK_FALSE(is_large_average(Op::all_reduce, ReduceOp::avg, Dtype::i32, 1 << 20));
}

TEST_CASE("members' large averages take the table's algorithm unless it needs wider numbers") {
  CHECK(algorithm_of_averages(Op::all_reduce, "mesh", 6) == "mesh");
  CHECK(algorithm_of_averages(Op::all_reduce, "bcube", 6) == "ring");
  CHECK(algorithm_of_averages(Op::all_reduce, "bcube", 3) == "bcube");
  CHECK(algorithm_of_averages(Op::all_reduce, "multi_tree", 4) == "multi_tree");
  CHECK(algorithm_of_averages(Op::all_reduce, "halving_doubling", 8) == "halving_doubling");
  CHECK(algorithm_of_averages(Op::all_reduce, "halving_doubling", 12) == "ring");
  CHECK(algorithm_of_averages(Op::reduce, "tree", 5) == "ring");
  CHECK(algorithm_of_averages(Op::reduce_scatter, "pairwise", 5) == "pairwise");
  CHECK(algorithm_of_averages(Op::all_gather, "bruck", 5) == "bruck");
}

TEST_CASE("auto chooses for a large average among the algorithms that need no wider numbers") {
  std::vector<Locality> localities;
  for (auto const* host : {"a", "a", "b", "b", "c", "c"}) localities.push_back({"", "", "", host});
  for (auto const op : {Op::all_reduce, Op::reduce, Op::reduce_scatter}) {
    auto const chosen =
        select({.op = op, .without_wider_sums = true}, localities, 1 << 20, 4, Constants::defaults()).value();
    for (auto const& candidate : chosen.considered) {
      CAPTURE(candidate.spec.algorithm);
      auto const* const algorithm = algorithms::find(candidate.spec.algorithm).value();
      CHECK(plan::summation_of(*algorithm, candidate.spec) != plan::Summation::any);
    }
  }
  auto const number = [&](Wish const& wish) {
    return select(wish, localities, 1 << 20, 4, Constants::defaults()).value().considered.size();
  };
  CHECK(number({.op = Op::broadcast, .without_wider_sums = true}) == number({.op = Op::broadcast}));
  // Whoever names one gets it.
  Wish const named{.algorithm = "bcube", .without_wider_sums = true};
  CHECK(select(named, localities, 1 << 20, 4, Constants::defaults()).value().spec.algorithm == "bcube");
}
