// Pinned memory as one range of offsets.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/devices/cuda/pinned.hpp"

namespace chorus::engine {

// The pool outlives it.
class PinnedArea {
 public:
  PinnedArea() = default;
  // Of parts of a slot, or as many slots in a row as so many bytes have: a power of two. All, or nothing. Errors:
  // GpuErrc::out_of_memory, lost.
  [[nodiscard]] static Result<PinnedArea> take(devices::PinnedPool& pool, std::uint64_t bytes,
                                               std::uint64_t part_bytes);

  // From there on, at most so many bytes, and as far as they lie in one part.
  [[nodiscard]] std::span<std::byte> at(std::uint64_t offset, std::uint64_t limit) const;

 private:
  std::vector<devices::PinnedSlot> parts_;
  std::uint64_t part_bytes_ = devices::PinnedPool::slot_bytes;
};

}  // namespace chorus::engine
