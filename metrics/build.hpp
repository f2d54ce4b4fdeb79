// Which build this is: for chorus_build_info, GET /v1 and the join of a worker.
#pragma once

#include <string>

namespace chorus::metrics {

struct Build {
  std::string version;   // "0.1.0"
  std::string compiler;  // "gcc 12.2.0"
  std::string boost;     // "1.81"
};
[[nodiscard]] Build this_build();

}  // namespace chorus::metrics
