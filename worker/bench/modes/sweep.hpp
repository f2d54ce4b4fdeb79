// Runs every requested task on every number of ranks, one after the other; and exit codes of modes that do so.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/logging/progress_line.hpp"
#include "worker/bench/ranks/options.hpp"
#include "worker/bench/ranks/ranks.hpp"
#include "worker/bench/timing/contest.hpp"

namespace chorus::bench {

using Visit = std::function<Status(Ranks&, Task const&, logging::ProgressLine&)>;

// Calls `visit` with the vectors prepared; clear the line before printing. Errors: those of Ranks, and of `visit`.
[[nodiscard]] Status for_each_task(Options const& options, std::vector<std::string> const& arguments,
                                   Visit const& visit);

// Duration, iterations and warm-up as in the options.
[[nodiscard]] Pace pace_of(Options const& options);

// Print errors to standard error; the exit status of the program.
[[nodiscard]] int fail(Error const& error);
[[nodiscard]] int exit_status(Status const& status, bool right);

}  // namespace chorus::bench
