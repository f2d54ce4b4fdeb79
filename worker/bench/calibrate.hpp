// This machine's constants of the cost model, from collectives of which it is known what they move.
#pragma once

#include <string>
#include <vector>

#include "collectives/core/result.hpp"
#include "http/api/constants.hpp"
#include "worker/bench/measurements.hpp"
#include "worker/bench/options.hpp"

namespace chorus::bench {

struct Calibration {
  api::ModelConstants constants;
  Found found;
};

// Two ranks, one message and two of which the second waits for the first, of several sizes: what a message takes. More
// ranks than cores, in ways that send many messages or few: what messages and bytes take of a core, from the CPU time
// of all ranks, and from the time that passes, which is that of the cores and of messages that wait for each other. All
// of it together by least squares. What a reduction takes, from its kernel alone.
//
// `arguments` start this program again, as a rank. Errors: those of Ranks.
[[nodiscard]] Result<Calibration> calibrate(Options const& options, std::vector<std::string> const& arguments);

}  // namespace chorus::bench
