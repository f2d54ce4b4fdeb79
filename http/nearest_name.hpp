// For "did you mean".
#pragma once

#include <span>
#include <string_view>

namespace chorus::http {

// The name that needs the fewest insertions, deletions and replacements of one character to become `wrong`; "" if none
// is near.
[[nodiscard]] std::string_view nearest_name(std::string_view wrong, std::span<std::string_view const> names);

}  // namespace chorus::http
