#include "worker/engine/testing/doubles.hpp"

#include <utility>

namespace chorus::engine::testing {

Double::Double(std::uint32_t index, devices::GpuLimits limits, std::uint64_t seed)
    : own(std::make_unique<devices::testing::GpuDouble>(index, 256 << 20, seed)),
      gpu(*own),
      unit(std::move(own), limits) {}

devices::GpuUnit* unit_of(Doubles const& doubles, plan::Rank rank) {
  return rank < doubles.size() && doubles[rank] != nullptr ? &doubles[rank]->unit : nullptr;
}

Buffer allocate_on(std::shared_ptr<Double> const& gpu, std::size_t bytes) {
  struct Owner {
    std::shared_ptr<Double> gpu;
    std::shared_ptr<devices::GpuMemory> memory;
  };
  auto const owner = std::make_shared<Owner>(Owner{gpu, gpu->unit.acquire(bytes).value()});
  auto const behind = gpu->gpu.behind(owner->memory->bytes());
  return {std::shared_ptr<std::byte>(owner, behind.data()), behind, owner->memory->bytes().data()};
}

}  // namespace chorus::engine::testing
