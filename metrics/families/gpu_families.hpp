// Makes the metric families of a worker's GPUs at a scrape, from the worker's counts. Private to metrics/.
#pragma once

#include <span>

#include "metrics/families/families.hpp"
#include "metrics/state/gpu_state.hpp"

namespace chorus::metrics {

[[nodiscard]] Families gpu_families(std::span<GpuState const> gpus);

}  // namespace chorus::metrics
