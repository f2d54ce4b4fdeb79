// Links between all pairs of workers, as somebody measured them: given to dry runs and simulations, and read from
// files.
#pragma once

#include <optional>
#include <vector>

namespace chorus::api {

// [i][j] is the way from worker i to worker j. Both are square and of one size; null on the diagonals, which are not
// read.
struct LinkMatrix {
  using Rows = std::vector<std::vector<std::optional<double>>>;
  Rows bandwidth_gbyte_per_s;  // 1 GB is 10^9 bytes
  Rows latency_us;             // one way
};

}  // namespace chorus::api
