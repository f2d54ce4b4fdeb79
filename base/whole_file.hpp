// Reads files whole.
#pragma once

#include <optional>
#include <string>

namespace chorus::http {

// Returns the content of a file. Empty if it cannot be opened or read, like a directory; errno says why.
[[nodiscard]] std::optional<std::string> content_of_file(std::string const& path);

}  // namespace chorus::http
