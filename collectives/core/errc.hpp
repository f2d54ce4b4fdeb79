// Errors of planning: specs, algorithms, localities and the text form of plans.
#pragma once

#include <system_error>

namespace chorus {

enum class PlanErrc {
  unknown_algorithm = 1,  // no algorithm of that name
  unsupported_operation,  // the algorithm exists, but cannot do this operation
  rank_out_of_range,      // rank or root not in 0..p-1
  bad_parameter,          // arity 0, too many ranks, a malformed locality
  malformed_text,         // a plan's text form that does not parse
};

[[nodiscard]] std::error_category const& plan_category();
[[nodiscard]] inline std::error_code make_error_code(PlanErrc e) { return {static_cast<int>(e), plan_category()}; }

}  // namespace chorus

template <>
struct std::is_error_code_enum<chorus::PlanErrc> : std::true_type {};
