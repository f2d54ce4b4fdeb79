// Which GPUs a process sees, and which of them read each other's memory.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>
#include <vector>

#include "worker/devices/cuda/gpu.hpp"

namespace chorus::devices::cuda {

[[nodiscard]] std::string uuid_text(cudaUUID_t const& uuid);  // "GPU-8e7d..."

// Another GPU of this process.
struct Neighbour {
  std::uint32_t index = 0;
  std::string uuid;
};

// As Gpu::reach, of the GPU `from` that has these neighbours. The access is turned on here, and stays: what opening a
// handle turns on goes when that is closed.
[[nodiscard]] Status reach(GpuInfo const& from, std::vector<Neighbour> const& neighbours, std::string_view uuid);

}  // namespace chorus::devices::cuda
