// One rank of a benchmark, in a process of its own.
#pragma once

#include "collectives/plan/spec.hpp"
#include "worker/bench/line_pipe.hpp"
#include "worker/bench/options.hpp"

namespace chorus::bench {

// Talks to the benchmark over the two pipes: says its URL and reads everybody's; then, for each size, reads the plan to
// use and warms up, and reads how often to iterate and says every iteration's time. Returns the exit code.
//
//   -> url http://127.0.0.1:41234
//   <- peers http://127.0.0.1:41234 http://127.0.0.1:41235
//   <- run 67108864 ring 0 2              bytes, algorithm, root, arity
//   -> warm 5                             after so many iterations
//   <- iterate 80                         any number of times
//   -> times 1 0.0121 0.0119 ...          1 if every result was right so far, then seconds
//   <- end
// `failed TEXT` instead of an answer ends the benchmark.
[[nodiscard]] int run_rank(Options const& options, plan::Rank rank, LineReader orders, LineWriter answers);

}  // namespace chorus::bench
