// Pinned host memory for staging, in slots of one size, up to a bound that is stated: the system cannot swap it out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "worker/devices/cuda/gpu.hpp"

namespace chorus::devices {

class PinnedPool;

// A slot, given back at the end. The pool outlives it.
class PinnedSlot {
 public:
  PinnedSlot(PinnedPool& pool, std::byte* data) : pool_(&pool), data_(data) {}
  PinnedSlot(PinnedSlot&& other) noexcept;
  PinnedSlot& operator=(PinnedSlot&&) = delete;
  ~PinnedSlot();

  [[nodiscard]] std::span<std::byte> bytes() const;

 private:
  PinnedPool* pool_;
  std::byte* data_;
};

// Thread-safe. Slots are kept once they were made, since to pin memory takes a millisecond. The GPU outlives it.
class PinnedPool {
 public:
  static constexpr std::uint64_t slot_bytes = 1 << 20;

  PinnedPool(Gpu& gpu, std::uint64_t limit_bytes) : gpu_(gpu), slots_max_(limit_bytes / slot_bytes) {}
  ~PinnedPool();
  PinnedPool(PinnedPool const&) = delete;
  PinnedPool& operator=(PinnedPool const&) = delete;

  // Errors: GpuErrc::out_of_memory at the bound, and where the system has no more; lost.
  [[nodiscard]] Result<PinnedSlot> take();

  [[nodiscard]] std::uint64_t pinned_bytes() const;  // in use or kept
  [[nodiscard]] std::uint64_t limit_bytes() const { return slots_max_ * slot_bytes; }

 private:
  friend class PinnedSlot;
  void give_back(std::byte* data);

  Gpu& gpu_;
  std::uint64_t const slots_max_;
  mutable std::mutex mutex_;
  std::vector<std::byte*> free_;
  std::uint64_t slots_ = 0;
};

}  // namespace chorus::devices
