// Slots of pinned memory as one range of offsets.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/devices/cuda/pinned.hpp"

namespace chorus::engine {

// The pool outlives it.
class PinnedArea {
 public:
  // All slots, or none. Errors: GpuErrc::out_of_memory, lost.
  [[nodiscard]] static Result<PinnedArea> take(devices::PinnedPool& pool, std::uint64_t bytes);

  // From there on, at most so many bytes, and as far as they lie in one slot.
  [[nodiscard]] std::span<std::byte> at(std::uint64_t offset, std::uint64_t limit) const;

 private:
  std::vector<devices::PinnedSlot> slots_;
};

}  // namespace chorus::engine
