#include "worker/engine/gpu/pinned_area.hpp"

#include <algorithm>
#include <utility>

namespace chorus::engine {

using devices::PinnedPool;

Result<PinnedArea> PinnedArea::take(PinnedPool& pool, std::uint64_t bytes) {
  PinnedArea area;
  auto const slots = (bytes + PinnedPool::slot_bytes - 1) / PinnedPool::slot_bytes;
  area.slots_.reserve(slots);
  while (area.slots_.size() < slots) {
    auto slot = pool.take();
    if (!slot) return slot.error();
    area.slots_.push_back(std::move(*slot));
  }
  return area;
}

std::span<std::byte> PinnedArea::at(std::uint64_t offset, std::uint64_t limit) const {
  auto const slot = slots_[offset / PinnedPool::slot_bytes].bytes();
  auto const within = offset % PinnedPool::slot_bytes;
  return slot.subspan(within, std::min(limit, slot.size() - within));
}

}  // namespace chorus::engine
