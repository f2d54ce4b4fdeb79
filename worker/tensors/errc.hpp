// Errors of tensor requests.
#pragma once

#include <system_error>

namespace chorus::tensors {

enum class TensorErrc { unknown = 1, busy, version_changed, bad_shape, bad_name, out_of_memory };

[[nodiscard]] std::error_category const& tensor_category();
[[nodiscard]] inline std::error_code make_error_code(TensorErrc e) { return {static_cast<int>(e), tensor_category()}; }

}  // namespace chorus::tensors

template <>
struct std::is_error_code_enum<chorus::tensors::TensorErrc> : std::true_type {};
