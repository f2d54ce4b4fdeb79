// "did you mean ...": the word that somebody probably wanted to type.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace chorus::cli {

// The candidate with the fewest letters inserted, left out, replaced or swapped; nothing if more than a third of the
// word would have to change. Among equals the first.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word, std::span<std::string const> candidates);

}  // namespace chorus::cli
