// Errors of making an optimizer or an initializer.
#pragma once

#include <system_error>

namespace chorus::parameters {

enum class OptimizerErrc { unsupported_dtype = 1, out_of_memory };

[[nodiscard]] std::error_category const& optimizer_category();
[[nodiscard]] inline std::error_code make_error_code(OptimizerErrc e) {
  return {static_cast<int>(e), optimizer_category()};
}

}  // namespace chorus::parameters

template <>
struct std::is_error_code_enum<chorus::parameters::OptimizerErrc> : std::true_type {};
