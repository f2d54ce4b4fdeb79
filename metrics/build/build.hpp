// Identifies the build, for --version, chorus_build_info, GET /v1 and the join of a worker.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace chorus::metrics {

struct Build {
  std::string version;         // "0.2.0"
  std::string commit;          // of the sources: "d0b80b0f2c11", or "unknown"; with local changes it ends in "+changes"
  std::string compiler;        // "gcc 12.2.0"
  std::string boost;           // "1.81"
  std::string cuda;            // architectures that kernels were compiled for: "75,80,90"; or "none"
  std::string tls;             // "OpenSSL 3.0.17"
  std::string plan_generator;  // "4"; builds with different numbers may generate different plans
};
[[nodiscard]] Build this_build();

// Returns all fields with their names, in order.
[[nodiscard]] std::vector<std::pair<std::string_view, std::string>> fields_of(Build const& build);

// Returns a program's answer to --version: a line for people, or an object if --json is among the arguments.
[[nodiscard]] std::string version_text(Build const& build, std::string_view program, int argc, char const* const* argv);

}  // namespace chorus::metrics
