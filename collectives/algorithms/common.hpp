// What the algorithms of this directory share.
#pragma once

#include <string_view>

#include "collectives/plan/algorithm.hpp"

namespace chorus::algorithms {

// For Algorithm::check. Errors: PlanErrc::unsupported_operation.
[[nodiscard]] Status only_all_reduce(plan::Spec const& spec);

// For Algorithm::scratch_chunks.
[[nodiscard]] std::uint32_t no_scratch(plan::Spec const& spec, plan::Rank rank);

// The only round of a group of one. Its input is complete as it stands, so nothing is final, and in place nothing is
// left to do.
void emit_alone(plan::Sink& sink);

}  // namespace chorus::algorithms
