// The names that users and workers give to things here: workers, groups, collectives.
#pragma once

#include <string_view>

#include "http/problem.hpp"

namespace chorus::coordinator {

// [A-Za-z0-9._-]{1,64}, and neither "." nor "..": safe in a path, a log line and a metric label.
[[nodiscard]] bool is_identifier(std::string_view text);

// invalid_field at `pointer`, saying what an identifier is.
[[nodiscard]] http::Problem not_an_identifier(std::string_view what, std::string_view text, std::string_view pointer);

// Text from outside that is only shown: at most `limit` bytes, no control characters.
[[nodiscard]] bool is_showable(std::string_view text, std::size_t limit);

// For log lines: control characters become spaces.
[[nodiscard]] std::string on_one_line(std::string text);

// In quotes, for an answer that says what is wrong with it.
[[nodiscard]] std::string quoted(std::string_view text);

// invalid_field with one error, the commonest problem of this module.
[[nodiscard]] http::Problem invalid_field(std::string pointer, std::string detail);

}  // namespace chorus::coordinator
