// GPU doubles for the ranks of a test.
#pragma once

#include <memory>
#include <vector>

#include "worker/devices/cuda/gpus.hpp"
#include "worker/devices/cuda/testing/gpu_double.hpp"
#include "worker/engine/testing/cases/case.hpp"

namespace chorus::engine::testing {

// A GPU double inside a unit, with access for the test.
struct Double {
  explicit Double(std::uint32_t index, devices::GpuLimits limits = {.arena_bytes = 64 << 20}, std::uint64_t seed = 1);

  std::unique_ptr<devices::testing::GpuDouble> own;  // empty once the unit owns the double
  devices::testing::GpuDouble& gpu;
  devices::GpuUnit unit;
};

using Doubles = std::vector<std::shared_ptr<Double>>;  // by rank

[[nodiscard]] devices::GpuUnit* unit_of(Doubles const& doubles, plan::Rank rank);
// Allocates memory of the double, with its address for the test and for the engine. The buffer keeps the double alive.
[[nodiscard]] Buffer allocate_on(std::shared_ptr<Double> const& gpu, std::size_t bytes);

}  // namespace chorus::engine::testing
