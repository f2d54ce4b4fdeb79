#include "worker/parameters/shard/elements/shard_memory.hpp"

namespace chorus::parameters {

Result<devices::GpuUnit*> ShardMemory::roomiest_gpu() const {
  using devices::GpuErrc;
  if (gpus == nullptr || gpus->size() == 0)
    return Error(GpuErrc::unavailable, gpus == nullptr ? "this worker uses no GPU" : gpus->why_none());
  devices::GpuUnit* roomiest = nullptr;
  std::uint64_t most = 0;
  auto why_not = Error(GpuErrc::lost, "");
  for (std::size_t i = 0; i < gpus->size(); ++i) {
    auto& unit = (*gpus)[i];
    if (auto const lost = unit.lost()) {
      why_not.detail = *lost;
      continue;
    }
    std::uint64_t room = 0;
    if (auto const arena = unit.arena_if_any()) {
      room = arena->bytes().size() - arena->used_bytes();
    } else {
      // The arena takes half of the free memory by default.
      auto const free = unit.gpu().free_bytes();
      if (free) room = *free / 2;
    }
    if (roomiest != nullptr && room <= most) continue;
    roomiest = &unit;
    most = room;
  }
  if (roomiest == nullptr) return why_not;
  return roomiest;
}

http::Problem why_not_made(Error const& error) {
  auto const is_missing = error.code == devices::GpuErrc::unavailable || error.code == devices::GpuErrc::lost;
  return {is_missing ? http::ProblemCode::unsupported : http::ProblemCode::unavailable, error.detail};
}

}  // namespace chorus::parameters
