#include "base/whole_file.hpp"

#include <array>
#include <fstream>

namespace chorus::http {

// read() says that it failed; iterators over the buffer would throw.
std::optional<std::string> content_of_file(std::string const& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, 4096> part;
  std::string content;
  while (file) {
    file.read(part.data(), part.size());
    content.append(part.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (!file.eof()) return std::nullopt;
  return content;
}

}  // namespace chorus::http
