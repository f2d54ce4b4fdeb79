// Constants of the cost model for this machine, from collectives with known traffic.
#pragma once

#include <string>
#include <vector>

#include "collectives/core/result.hpp"
#include "http/api/cluster/constants.hpp"
#include "worker/bench/calibration/measurements.hpp"
#include "worker/bench/ranks/options.hpp"

namespace chorus::bench {

struct Calibration {
  api::ModelConstants constants;
  Found found;
};

// Two ranks, one message, and two messages of which the second waits for the first, of several sizes: the cost of a
// message. More ranks than cores, with many messages or few: the core time of messages and bytes, from the CPU time of
// all ranks, and from the elapsed time, which is that of the cores and of messages that wait for each other. All
// together by least squares. The cost of a reduction comes from its kernel alone.
//
// `arguments` start this program again as a rank. Errors: those of Ranks.
[[nodiscard]] Result<Calibration> calibrate(Options const& options, std::vector<std::string> const& arguments);

}  // namespace chorus::bench
