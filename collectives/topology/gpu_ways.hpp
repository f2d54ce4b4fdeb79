// The ways that workers of one host have to each other over their GPUs.
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

// Between two GPUs of one host: within one and the same the rate of a copy, which reads and writes its memory;
// otherwise that of the NVLinks between them, or to the switches, which are one fabric. Where the two say different
// things, the lesser. Nothing: they reach each other as any two workers of the host do.
[[nodiscard]] std::optional<double> gbyte_per_s_between(GpuLocality const& a, GpuLocality const& b);

// Of every two workers of one host of which every GPU reaches every GPU of the other: the slowest of these ways, which
// holds wherever their tensors lie. gpus[i] are those of the worker at localities[i].
[[nodiscard]] std::vector<GpuWay> gpu_ways(std::span<Locality const> localities,
                                           std::span<std::vector<GpuLocality> const> gpus);

}  // namespace chorus::topology
