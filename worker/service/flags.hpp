// The command line of chorus-worker; every flag may also come from the environment.
#pragma once

#include <optional>
#include <string>

#include "worker/service/options.hpp"

namespace chorus::service {

struct Flags {
  WorkerOptions options;
  std::string log_level = "info";
};

// Empty if there is nothing to run: `exit_status` is then 0 (--help, --version) or 2, and the output was written.
[[nodiscard]] std::optional<Flags> parse_flags(int argc, char const* const* argv, int& exit_status);

}  // namespace chorus::service
