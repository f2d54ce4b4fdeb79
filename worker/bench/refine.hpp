// `auto` after a number of runs, as a coordinator that launches them refines it (model::LearnedCosts).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "collectives/core/result.hpp"
#include "worker/bench/contenders.hpp"

namespace chorus::bench {

// One run of a contender's plan: its seconds, the slowest rank's.
using RunOnce = std::function<Result<double>(plan::Spec const& spec)>;

// Runs what `auto` takes, so many times, learning from each run. Then the one that it takes now is the first of the
// contenders, which was before what the model takes. Errors: the first of `run`.
[[nodiscard]] Status refine(std::vector<Contender>& contenders, Task const& task, std::uint32_t runs,
                            RunOnce const& run);

}  // namespace chorus::bench
