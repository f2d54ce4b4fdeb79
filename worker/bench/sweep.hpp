// Every task that was asked for, on every number of ranks, one after the other; and how a mode that does so ends.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "http/logging/progress_line.hpp"
#include "worker/bench/contest.hpp"
#include "worker/bench/options.hpp"
#include "worker/bench/ranks.hpp"

namespace chorus::bench {

using Visit = std::function<Status(Ranks&, Task const&, logging::ProgressLine&)>;

// Calls `visit` with the vectors prepared; clear the line before printing. Errors: those of Ranks, and of `visit`.
[[nodiscard]] Status for_each_task(Options const& options, std::vector<std::string> const& arguments,
                                   Visit const& visit);

// As long, as often and with as much warming up as the options say.
[[nodiscard]] Pace pace_of(Options const& options);

// Says on standard error what went wrong, if anything did; the exit status of the program.
[[nodiscard]] int fail(Error const& error);
[[nodiscard]] int exit_status(Status const& status, bool right);

}  // namespace chorus::bench
