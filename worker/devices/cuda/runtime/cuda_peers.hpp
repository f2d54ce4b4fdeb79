// Peer access between the GPUs that this process sees.
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

// Gpu::reach() for the GPU `from` with these neighbours. Enables peer access for good; the access that opening a handle
// enables ends when the handle is closed.
[[nodiscard]] Status reach(GpuInfo const& from, std::vector<Neighbour> const& neighbours, std::string_view uuid);

}  // namespace chorus::devices::cuda
