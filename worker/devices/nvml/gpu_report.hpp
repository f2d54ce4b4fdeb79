// What a worker tells the coordinator of its GPUs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "collectives/core/gpu_locality.hpp"
#include "worker/devices/cuda/gpu.hpp"
#include "worker/devices/nvml/nvml.hpp"

namespace chorus::devices {

struct GpuReport {
  std::vector<GpuLocality> gpus;     // in the order given
  std::vector<std::string> unknown;  // one line for each thing that the driver would not say
};

// Those that the worker uses; what they are wired to is asked of the management library, which is loaded if there are
// any. What it does not know by its UUID has no links.
[[nodiscard]] GpuReport report_gpus(std::span<GpuInfo const> used, std::string const& library = nvml_library);

}  // namespace chorus::devices
