// Errors of compressed gradients.
#pragma once

#include <system_error>

namespace chorus::parameters {

enum class CompressionErrc { bad_settings = 1, nonfinite, length_mismatch, bad_header, bad_index, bad_code, bad_scale };

[[nodiscard]] std::error_category const& compression_category();
[[nodiscard]] inline std::error_code make_error_code(CompressionErrc e) {
  return {static_cast<int>(e), compression_category()};
}

}  // namespace chorus::parameters

template <>
struct std::is_error_code_enum<chorus::parameters::CompressionErrc> : std::true_type {};
