// The choice of `auto` after a number of runs, as a coordinator that launches them refines it (model::LearnedCosts).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "collectives/core/result.hpp"
#include "worker/bench/modes/contenders.hpp"

namespace chorus::bench {

// Runs a contender's plan once; returns the seconds of the slowest rank.
using RunOnce = std::function<Result<double>(plan::Spec const& spec)>;

// Runs the choice of `auto` `runs` times, learning from each run. Then moves its final choice to the front of the
// contenders; before, the model's choice was there. Errors: the first of `run`.
[[nodiscard]] Status refine(std::vector<Contender>& contenders, Task const& task, std::uint32_t runs,
                            RunOnce const& run);

}  // namespace chorus::bench
