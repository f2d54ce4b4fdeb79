// Series of each GPU, made from the worker's own counts when somebody scrapes. Private to metrics/.
#pragma once

#include <span>

#include "metrics/families.hpp"
#include "metrics/gpu_state.hpp"

namespace chorus::metrics {

[[nodiscard]] Families gpu_families(std::span<GpuState const> gpus);

}  // namespace chorus::metrics
