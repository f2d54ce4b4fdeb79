// Makes text from a peer safe for logs and answers.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace chorus::links {

// Replaces every byte that is not printable ASCII by a question mark.
[[nodiscard]] inline std::string printable(std::span<std::byte const> bytes) {
  std::string text(reinterpret_cast<char const*>(bytes.data()), bytes.size());
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text;
}

}  // namespace chorus::links
