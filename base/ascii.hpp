// Comparisons and lists of header fields: ASCII only, whatever the locale is.
#pragma once

#include <algorithm>
#include <string_view>

namespace chorus::http {

[[nodiscard]] constexpr char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

[[nodiscard]] constexpr bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return to_lower(x) == to_lower(y); });
}

// Returns `text` without the spaces and tabs at its ends.
[[nodiscard]] constexpr std::string_view trimmed(std::string_view text) {
  auto const first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Returns true if a comma-separated list, such as the value of Connection, contains the token.
[[nodiscard]] constexpr bool list_contains(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    auto const part = list.substr(0, list.find(','));
    if (equals_ignoring_case(trimmed(part), token)) return true;
    list.remove_prefix(std::min(list.size(), part.size() + 1));
  }
  return false;
}

}  // namespace chorus::http
