// Errors in the user's input.
#pragma once

#include <system_error>

namespace chorus::cli {

enum class CliErrc {
  bad_value = 1,    // a size, duration, number or URL that does not parse or is out of range
  program_missing,  // a companion program that is not installed
  bad_file,         // a file with wrong content, or one that cannot be read or written
};

[[nodiscard]] std::error_category const& cli_category();
[[nodiscard]] inline std::error_code make_error_code(CliErrc e) { return {static_cast<int>(e), cli_category()}; }

}  // namespace chorus::cli

template <>
struct std::is_error_code_enum<chorus::cli::CliErrc> : std::true_type {};
