// Durations as people write them in queries: "500ms", "30s", "2m".
#pragma once

#include <chrono>
#include <string_view>

#include "http/json/problem.hpp"

namespace chorus::coordinator {

inline constexpr std::chrono::milliseconds longest_wait = std::chrono::minutes(10);

// Parses a whole number and one of ms, s, m. Problems: bad_request with the text, also above longest_wait.
[[nodiscard]] http::Checked<std::chrono::milliseconds> parse_duration(std::string_view text);

}  // namespace chorus::coordinator
