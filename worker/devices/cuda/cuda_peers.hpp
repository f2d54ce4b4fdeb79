// Which GPUs a process sees, and which of them read each other's memory.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

#include "worker/devices/cuda/gpu.hpp"

namespace chorus::devices::cuda {

[[nodiscard]] std::string uuid_text(cudaUUID_t const& uuid);  // "GPU-8e7d..."

// As Gpu::reach, of the GPU `from`. To open a handle there is what turns the access on.
[[nodiscard]] Status reach(GpuInfo const& from, std::string_view uuid);

}  // namespace chorus::devices::cuda
