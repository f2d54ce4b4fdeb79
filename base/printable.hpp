// Makes text from outside safe to show in a line of a log or on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace chorus::http {

// Writes control characters as "\n", "\t", "\x1b": the text stays on one line and cannot control the terminal.
[[nodiscard]] std::string printable(std::string_view text);

// Returns at most about `limit` bytes of `text`, then "..." if there is more. No character is cut in two.
[[nodiscard]] std::string excerpt(std::string_view text, std::size_t limit);

}  // namespace chorus::http
