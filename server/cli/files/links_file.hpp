// Reads a measured link matrix from a file.
#pragma once

#include <string_view>

#include "collectives/core/result.hpp"
#include "http/api/cluster/link_matrix.hpp"

namespace chorus::cli {

// The file has the form of `links` of POST /v1/plans, and at most 1 MiB. Errors: the system's error, or
// CliErrc::bad_value with the mistake in the text. The values of the links are not checked here.
[[nodiscard]] Result<api::LinkMatrix> read_links(std::string_view path);

}  // namespace chorus::cli
