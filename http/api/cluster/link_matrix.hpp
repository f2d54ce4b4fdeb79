// Measured links between all pairs of workers: an input of dry runs and simulations, also read from files.
#pragma once

#include <optional>
#include <vector>

namespace chorus::api {

// Element [i][j] is the path from worker i to worker j. Both matrices are square and of one size. The diagonals are
// null and are not read.
struct LinkMatrix {
  using Rows = std::vector<std::vector<std::optional<double>>>;
  Rows bandwidth_gbyte_per_s;  // 1 GB is 10^9 bytes
  Rows latency_us;             // one way
};

}  // namespace chorus::api
