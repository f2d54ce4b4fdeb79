// Names that users and workers give to workers, groups and collectives.
#pragma once

#include <string_view>

#include "http/json/problem.hpp"

namespace chorus::coordinator {

// Allows [A-Za-z0-9._-]{1,64} except "." and "..": safe in a path, a log line and a metric label.
[[nodiscard]] bool is_identifier(std::string_view text);

// Returns invalid_field at `pointer` with the rule for identifiers.
[[nodiscard]] http::Problem not_an_identifier(std::string_view what, std::string_view text, std::string_view pointer);

// True for foreign text that may be shown: at most `limit` bytes, no control characters.
[[nodiscard]] bool is_showable(std::string_view text, std::size_t limit);

// Replaces control characters by spaces, for log lines.
[[nodiscard]] std::string on_one_line(std::string text);

// Puts foreign text in quotes, for an answer that reports it.
[[nodiscard]] std::string quoted(std::string_view text);

// Returns invalid_field with one error.
[[nodiscard]] http::Problem invalid_field(std::string pointer, std::string detail);

}  // namespace chorus::coordinator
