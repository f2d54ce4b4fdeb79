// Which of the host's GPUs a worker uses.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "worker/devices/cuda/gpus.hpp"

namespace chorus::service {

struct GpuChoice {
  bool is_auto = true;                 // all that are found
  std::vector<std::uint32_t> indices;  // otherwise; none: no GPU, and the driver is not asked
};

// "auto", "none", or "0,2". Errors: GpuErrc::unavailable for what is neither, and for an index that is given twice.
[[nodiscard]] Result<GpuChoice> parse_gpu_choice(std::string_view text);

// Of those that were found, the ones that are wanted. Errors: GpuErrc::unavailable for one that is not there.
[[nodiscard]] Result<devices::FoundGpus> choose(GpuChoice const& choice, devices::FoundGpus found);

// The host's. Errors: as choose().
[[nodiscard]] Result<devices::FoundGpus> find_gpus(GpuChoice const& choice);

}  // namespace chorus::service
