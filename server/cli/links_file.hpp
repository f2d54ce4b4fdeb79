// A measured link matrix from a file.
#pragma once

#include <string_view>

#include "collectives/core/result.hpp"
#include "http/api/link_matrix.hpp"

namespace chorus::cli {

// The file holds what `links` of POST /v1/plans does, at most 1 MiB. Errors: what the system said, or
// CliErrc::bad_value with what is wrong with the text. Whether the numbers can be links is for whoever uses them to
// say.
[[nodiscard]] Result<api::LinkMatrix> read_links(std::string_view path);

}  // namespace chorus::cli
