// The modes of chorus-bench, one function each. They print results to standard output, and errors and wrong results to
// standard error.
#pragma once

#include <string>
#include <vector>

#include "worker/bench/ranks/options.hpp"

namespace chorus::bench {

// `arguments` start this program again as a rank. The exit code: 0, or 1 for errors and wrong results.
[[nodiscard]] int run_measure(Options const& options, std::vector<std::string> const& arguments);
// One call for each of many tensors, compared to one call for all of them, in turns.
[[nodiscard]] int run_fused(Options const& options, std::vector<std::string> const& arguments);
// A call that is counted for metrics, compared to one that is not, in turns.
[[nodiscard]] int run_metrics(Options const& options, std::vector<std::string> const& arguments);
[[nodiscard]] int run_regret(Options const& options, std::vector<std::string> const& arguments);
[[nodiscard]] int run_calibrate(Options const& options, std::vector<std::string> const& arguments);
[[nodiscard]] int run_ceiling(Options const& options);

}  // namespace chorus::bench
