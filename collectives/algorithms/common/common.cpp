#include "collectives/algorithms/common/common.hpp"

#include <algorithm>

#include "collectives/core/errc.hpp"

namespace chorus::algorithms {

Status check_among(plan::Spec const& spec, std::span<Op const> ops) {
  std::string list;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i] == spec.op) return ok();
    if (i > 0) list += i + 1 == ops.size() ? " and " : ", ";
    list += name(ops[i]);
  }
  return Error(PlanErrc::unsupported_operation,
               spec.algorithm + " does " + list + ", not " + std::string(name(spec.op)));
}

Status no_shape(plan::Spec const& spec) {
  if (spec.shape.empty()) return ok();
  return Error(PlanErrc::bad_parameter, spec.algorithm + " takes no shape, but shape is " + to_text(spec.shape));
}

Status only_all_reduce(plan::Spec const& spec) {
  auto const status = only<Op::all_reduce>(spec);
  return status.has_error() ? status : no_shape(spec);
}

Error wrong_shape(plan::Spec const& spec, std::string_view expected) {
  return {PlanErrc::bad_parameter, spec.algorithm + ": shape " + to_text(spec.shape) + " does not fit " +
                                       std::to_string(spec.ranks) + " ranks; expected " + std::string(expected)};
}

std::string to_text(plan::Shape const& shape) {
  constexpr std::size_t shown = 16;
  std::string text;
  for (std::size_t i = 0; i < std::min(shape.size(), shown); ++i)
    text += (i == 0 ? "" : ",") + std::to_string(shape[i]);
  return shape.size() > shown ? text + ",... of " + std::to_string(shape.size()) + " numbers" : text;
}

std::uint32_t no_scratch(plan::Spec const&, plan::Rank) { return 0; }

void emit_alone(plan::Sink& sink) { sink.copy(plan::input(0), plan::output(0)); }

std::uint32_t chunk_per_rank(plan::Spec const& spec) { return spec.ranks; }

std::uint32_t chunk_per_block(plan::Spec const& spec) { return has_blocks(spec.op) ? spec.ranks : 1; }

}  // namespace chorus::algorithms
