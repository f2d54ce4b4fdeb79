// This machine's constants of the cost model, from collectives of which it is known what they move.
#pragma once

#include <string>
#include <vector>

#include "collectives/core/result.hpp"
#include "http/api/constants.hpp"
#include "worker/bench/options.hpp"

namespace chorus::bench {

struct Calibration {
  api::ModelConstants constants;
  double call_s = 0;         // of a collective without messages; the same for all, and so in no constant
  double call_cpu_s = 0;     // likewise, of a core, per rank
  double channel_cpu_s = 0;  // of a core, at each end of a channel
  double link_error = 0;     // medians of the relative errors of the fits
  double cpu_error = 0;
};

// Latency and bandwidth from two ranks: one message, and two of which the second waits for the first, of several sizes.
// What messages and bytes cost a core from more ranks than cores. The reduction's cost from its kernel alone.
// `arguments` start this program again, as a rank. Errors: those of Ranks.
[[nodiscard]] Result<Calibration> calibrate(Options const& options, std::vector<std::string> const& arguments);

}  // namespace chorus::bench
