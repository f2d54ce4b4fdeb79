// Header fields that must not be repeated, because it would be unclear which value counts.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/message/message.hpp"

namespace chorus::service {

// Problem bad_request for a field that is given more than once.
[[nodiscard]] inline http::Checked<std::optional<std::string_view>> single_field(http::Fields const& fields,
                                                                                 std::string_view name) {
  if (fields.count(name) <= 1) return fields.find(name);
  return http::Problem(http::ProblemCode::bad_request, "the header field " + std::string(name) + " is given twice");
}

}  // namespace chorus::service
