#include "collectives/model/choice/averages.hpp"

#include <string>

#include "collectives/algorithms/catalogue.hpp"

namespace chorus::model {
namespace {

constexpr std::uint64_t large_bytes = 128 * 1024;

}  // namespace

bool is_large_average(Op op, ReduceOp reduce, Dtype dtype, std::uint64_t bytes) {
  bool const is_average = reduces(op) && reduce == ReduceOp::avg;
  return is_average && (dtype == Dtype::f32 || dtype == Dtype::f64) && bytes >= large_bytes;
}

std::string_view algorithm_of_averages(Op op, std::string_view of_sums, std::uint32_t ranks) {
  auto const algorithm = algorithms::find(of_sums);
  if (!reduces(op) || !algorithm) return of_sums;
  plan::Spec const spec{.op = op, .algorithm = std::string(of_sums), .ranks = ranks};
  return plan::summation_of(**algorithm, spec) == plan::Summation::any ? "ring" : of_sums;
}

}  // namespace chorus::model
