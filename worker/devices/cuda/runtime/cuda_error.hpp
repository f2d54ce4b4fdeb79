// Converts errors of the CUDA runtime to GpuErrc.
#pragma once

#include <cuda_runtime_api.h>

#include "worker/devices/cuda/gpu.hpp"

namespace chorus::devices::cuda {

// doing: the call that failed, for people. Clears the runtime's last error, unless it is sticky.
[[nodiscard]] Error error_of(GpuInfo const& info, char const* doing, cudaError_t error);

}  // namespace chorus::devices::cuda
