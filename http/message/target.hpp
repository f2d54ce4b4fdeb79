// Parses request targets: from "/v1/tensors/grad%2F0?cursor=7" to a path and a query. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/json/problem.hpp"

namespace chorus::http {

struct Target {
  std::string path;                                        // percent-decoded
  std::vector<std::pair<std::string, std::string>> query;  // percent-decoded, in order; "a" is {"a", ""}
};

// Returns the path part as sent: without query, and without scheme and authority of an absolute-form target. Returns ""
// if the target begins with neither "/" nor "http://".
[[nodiscard]] std::string_view raw_path(std::string_view target);

// Problem bad_request: no leading slash, "%" without two hexadecimal digits, or control characters, encoded or not (a
// path gets into logs, header fields and names).
[[nodiscard]] Checked<Target> parse_target(std::string_view target);
[[nodiscard]] Checked<std::string> percent_decoded(std::string_view text);

}  // namespace chorus::http
