// One rank of a benchmark, in a process of its own.
#pragma once

#include "collectives/plan/spec.hpp"
#include "worker/bench/ranks/line_pipe.hpp"
#include "worker/bench/ranks/options.hpp"
#include "worker/bench/ranks/start_line.hpp"

namespace chorus::bench {

// Talks to the benchmark over the two pipes: sends its URL and reads those of all ranks; then prepares the vectors of a
// task and runs it by one plan or another, as often as it is told, beginning every iteration together with all ranks.
// Returns the exit code.
//
//   -> url http://127.0.0.1:41234
//   <- peers http://127.0.0.1:41234 http://127.0.0.1:41235
//   <- prepare all_reduce f32 16777216 0   the task: see orders.hpp
//   -> ready all_reduce
//   <- iterate 80 ring 0 2 -               any number of times
//   -> times shm 1 0.9 0.0121 0.0119 ...   the link that was used (shm, tcp, tls, ipc), 1 if every result was right,
//   CPU seconds of the
//                                          process in all iterations (without the check), and seconds of each
//   <- iterate_fused 80 ring 0 2 -         the same of all tensors in one call, where options.fused says how many
//   <- end
// `failed TEXT` instead of an answer ends the benchmark.
[[nodiscard]] int run_rank(Options const& options, plan::Rank rank, LineReader orders, LineWriter answers,
                           StartLine start_line);

}  // namespace chorus::bench
