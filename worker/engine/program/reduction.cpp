#include "worker/engine/program/reduction.hpp"

namespace chorus::engine {
namespace {

bool averages(plan::Program const& program, ReduceOp reduce) {
  return reduces(program.spec.op) && reduce == ReduceOp::avg;
}

}  // namespace

devices::Reducer reducer_of(plan::Program const& program, Dtype dtype, ReduceOp reduce) {
  return reduces(program.spec.op) ? devices::Reducer(reduce, dtype) : devices::Reducer::copier(dtype);
}

Average average_of(plan::Program const& program, Dtype dtype, ReduceOp reduce) {
  if (!averages(program, reduce)) return {};
  auto const ranks = program.spec.ranks;
  return {ranks, devices::scale_of_average(dtype, ranks),
          program.adds_one_by_one ? devices::compared_contributions(dtype, ranks) : 0};
}

Reductions::Reductions(plan::Program const& program, Dtype dtype, ReduceOp reduce, std::optional<Average> average)
    : program_(program),
      keeps_wide_partials_(reduces(program.spec.op) && devices::is_summed_in_f32(dtype)),
      average_(average && averages(program, reduce) ? *average : average_of(program, dtype, reduce)),
      weights_{{{1 / average_.scale, 1 / average_.scale}, {1 / average_.scale, 1}}, {{1, 1 / average_.scale}, {1, 1}}} {
}

}  // namespace chorus::engine
