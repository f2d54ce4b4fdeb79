#include "base/whole_file.hpp"

#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>

namespace chorus::http {

// read() says that it failed; iterators over the buffer would throw.
Result<std::string> content_of_file(std::string const& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, 4096> part;
  std::string content;
  while (file) {
    file.read(part.data(), part.size());
    content.append(part.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (file.eof()) return content;
  std::error_code const why(errno, std::generic_category());
  return Error(why, path + ": " + why.message());
}

}  // namespace chorus::http
