// Choice of the host's GPUs that a worker uses.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "worker/devices/cuda/gpus.hpp"

namespace chorus::service {

struct GpuChoice {
  bool is_auto = true;                 // all GPUs that are found
  std::vector<std::uint32_t> indices;  // used if !is_auto; empty: no GPU, and the driver is not loaded
};

// Parses "auto", "none", or "0,2". Errors: GpuErrc::unavailable for other text, and for a repeated index.
[[nodiscard]] Result<GpuChoice> parse_gpu_choice(std::string_view text);

// The chosen ones of the GPUs found. Errors: GpuErrc::unavailable for an index that was not found.
[[nodiscard]] Result<devices::FoundGpus> choose(GpuChoice const& choice, devices::FoundGpus found);

// The chosen GPUs of this host. Errors: see choose().
[[nodiscard]] Result<devices::FoundGpus> find_gpus(GpuChoice const& choice);

}  // namespace chorus::service
