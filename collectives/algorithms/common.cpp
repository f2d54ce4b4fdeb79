#include "collectives/algorithms/common.hpp"

#include <string>

#include "collectives/core/errc.hpp"

namespace chorus::algorithms {

Status only_all_reduce(plan::Spec const& spec) {
  if (spec.op == Op::all_reduce) return ok();
  return Error(PlanErrc::unsupported_operation, spec.algorithm + " does all_reduce, not " + std::string(name(spec.op)));
}

std::uint32_t no_scratch(plan::Spec const&, plan::Rank) { return 0; }

void emit_alone(plan::Sink& sink) { sink.copy(plan::input(0), plan::output(0)); }

}  // namespace chorus::algorithms
