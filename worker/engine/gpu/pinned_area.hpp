// Pinned memory of a pool as one range of offsets.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/devices/cuda/pinned.hpp"

namespace chorus::engine {

// The pool outlives the area.
class PinnedArea {
 public:
  PinnedArea() = default;
  // Takes memory in parts of one slot, or of as many consecutive slots as `part_bytes` needs: a power of two. All or
  // nothing. Errors: GpuErrc::out_of_memory, lost.
  [[nodiscard]] static Result<PinnedArea> take(devices::PinnedPool& pool, std::uint64_t bytes,
                                               std::uint64_t part_bytes);

  // The memory at `offset`, at most `limit` bytes, within one part.
  [[nodiscard]] std::span<std::byte> at(std::uint64_t offset, std::uint64_t limit) const;

 private:
  std::vector<devices::PinnedSlot> parts_;
  std::uint64_t part_bytes_ = devices::PinnedPool::slot_bytes;
};

}  // namespace chorus::engine
