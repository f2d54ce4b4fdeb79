// A worker's report of its GPUs to the coordinator.
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
  std::vector<std::string> unknown;  // one line for each query that failed
};

// Reports the GPUs that the worker uses. Their links come from the management library, which is loaded if there are any
// GPUs. A GPU whose UUID the library does not know has no links.
[[nodiscard]] GpuReport report_gpus(std::span<GpuInfo const> used, std::string const& library = nvml_library);

}  // namespace chorus::devices
