// Errors of push logs.
#pragma once

#include <system_error>

namespace chorus::parameters {

enum class LogErrc {
  not_found = 1,  // there is no log
  damaged,        // the bytes on the disk differ from those that were written
  misfit,         // the log is of another shard
};

[[nodiscard]] std::error_category const& log_category();
[[nodiscard]] inline std::error_code make_error_code(LogErrc e) { return {static_cast<int>(e), log_category()}; }

}  // namespace chorus::parameters

template <>
struct std::is_error_code_enum<chorus::parameters::LogErrc> : std::true_type {};
