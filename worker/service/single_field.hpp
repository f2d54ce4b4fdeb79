// Header fields that mean nothing when they are given twice: which of the two would count?
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/message.hpp"

namespace chorus::service {

// Problem bad_request for a field that is given more than once.
[[nodiscard]] inline http::Checked<std::optional<std::string_view>> single_field(http::Fields const& fields,
                                                                                 std::string_view name) {
  if (fields.count(name) <= 1) return fields.find(name);
  return http::Problem(http::ProblemCode::bad_request, "the header field " + std::string(name) + " is given twice");
}

}  // namespace chorus::service
