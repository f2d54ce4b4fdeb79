// printf into a string: columns and numbers of fixed precision.
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

namespace chorus::bench {

// Up to 1023 characters; longer text is cut.
template <class... Values>
[[nodiscard]] std::string format(char const* pattern, Values... values) {
  std::array<char, 1024> text{};
  auto const size = std::snprintf(text.data(), text.size(), pattern, values...);
  return {text.data(), std::min(static_cast<std::size_t>(std::max(size, 0)), text.size() - 1)};
}

}  // namespace chorus::bench
