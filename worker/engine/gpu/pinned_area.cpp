#include "worker/engine/gpu/pinned_area.hpp"

#include <algorithm>
#include <utility>

namespace chorus::engine {

using devices::PinnedPool;

Result<PinnedArea> PinnedArea::take(PinnedPool& pool, std::uint64_t bytes, std::uint64_t part_bytes) {
  PinnedArea area;
  area.part_bytes_ = std::max(part_bytes, PinnedPool::slot_bytes);
  auto const parts = (bytes + area.part_bytes_ - 1) / area.part_bytes_;
  area.parts_.reserve(parts);
  while (area.parts_.size() < parts) {
    auto part = pool.take(devices::PinnedUse::run, static_cast<unsigned>(area.part_bytes_ / PinnedPool::slot_bytes));
    if (!part) return part.error();
    area.parts_.push_back(std::move(*part));
  }
  return area;
}

std::span<std::byte> PinnedArea::at(std::uint64_t offset, std::uint64_t limit) const {
  auto const part = parts_[offset / part_bytes_].bytes();
  auto const within = offset % part_bytes_;
  return part.subspan(within, std::min(limit, part.size() - within));
}

}  // namespace chorus::engine
