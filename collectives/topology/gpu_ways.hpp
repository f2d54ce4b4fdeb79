// Connections between workers of one host over their GPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collectives/core/gpu_locality.hpp"
#include "collectives/core/locality.hpp"

namespace chorus::topology {

// The same in both directions; a and b are indices in a list of workers, or ranks.
struct GpuWay {
  std::uint32_t a = 0, b = 0;
  double gbyte_per_s = 0;
  friend bool operator==(GpuWay const&, GpuWay const&) = default;
};

// Bandwidth between two GPUs of one host. For one and the same GPU: the rate of a copy, which reads and writes its
// memory. Otherwise that of the NVLinks between them, or to the switches, which are one fabric; the lesser one if the
// two GPUs report different values. Empty: they communicate like any two workers of the host.
[[nodiscard]] std::optional<double> gbyte_per_s_between(GpuLocality const& a, GpuLocality const& b);

// For every two workers of one host whose GPUs all reach each other: the slowest of these connections, which holds
// wherever their tensors are. gpus[i] are those of the worker at localities[i].
[[nodiscard]] std::vector<GpuWay> gpu_ways(std::span<Locality const> localities,
                                           std::span<std::vector<GpuLocality> const> gpus);

}  // namespace chorus::topology
