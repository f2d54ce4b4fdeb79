// Reads files whole.
#pragma once

#include <string>

#include "collectives/core/result.hpp"

namespace chorus::http {

// Returns the content of a file. Errors: "PATH: why" if it cannot be opened or read, like a directory.
[[nodiscard]] Result<std::string> content_of_file(std::string const& path);

}  // namespace chorus::http
