#include "collectives/algorithms/common.hpp"

#include <algorithm>

#include "collectives/core/errc.hpp"

namespace chorus::algorithms {

Status only(plan::Spec const& spec, std::initializer_list<Op> ops) {
  if (std::find(ops.begin(), ops.end(), spec.op) != ops.end()) return ok();
  std::string known;
  for (auto const& op : ops)
    known += (&op == ops.begin() ? " " : &op + 1 == ops.end() ? " and " : ", ") + std::string(name(op));
  return Error(PlanErrc::unsupported_operation,
               spec.algorithm + " does" + known + ", not " + std::string(name(spec.op)));
}

Status no_shape(plan::Spec const& spec) {
  if (spec.shape.empty()) return ok();
  return Error(PlanErrc::bad_parameter, spec.algorithm + " takes no shape, but shape is " + to_text(spec.shape));
}

Status only_all_reduce(plan::Spec const& spec) {
  auto const status = only(spec, {Op::all_reduce});
  return status.has_error() ? status : no_shape(spec);
}

Error wrong_shape(plan::Spec const& spec, std::string_view expected) {
  return {PlanErrc::bad_parameter, spec.algorithm + ": shape " + to_text(spec.shape) + " does not fit " +
                                       std::to_string(spec.ranks) + " ranks; expected " + std::string(expected)};
}

std::string to_text(plan::Shape const& shape) {
  std::string text;
  for (auto const number : shape) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

std::uint32_t no_scratch(plan::Spec const&, plan::Rank) { return 0; }

void emit_alone(plan::Sink& sink) { sink.copy(plan::input(0), plan::output(0)); }

}  // namespace chorus::algorithms
