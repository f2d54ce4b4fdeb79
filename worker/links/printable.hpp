// Text from the other side, as it may go into logs and answers.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace chorus::links {

// Whatever is no printable ASCII is a question mark.
[[nodiscard]] inline std::string printable(std::span<std::byte const> bytes) {
  std::string text(reinterpret_cast<char const*>(bytes.data()), bytes.size());
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text;
}

}  // namespace chorus::links
