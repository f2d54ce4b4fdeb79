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

// Who takes a slot. Transfers of clients get half of the slots at most, so that however many there are, runs have the
// rest.
enum class PinnedUse : bool { run, transfer };

// A slot, given back at the end. The pool outlives it.
class PinnedSlot {
 public:
  PinnedSlot(PinnedPool& pool, std::byte* data, PinnedUse use) : pool_(&pool), data_(data), use_(use) {}
  PinnedSlot(PinnedSlot&& other) noexcept;
  PinnedSlot& operator=(PinnedSlot&&) = delete;
  ~PinnedSlot();

  [[nodiscard]] std::span<std::byte> bytes() const;

 private:
  PinnedPool* pool_;
  std::byte* data_;
  PinnedUse use_;
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
  [[nodiscard]] Result<PinnedSlot> take(PinnedUse use = PinnedUse::run);

  [[nodiscard]] std::uint64_t pinned_bytes() const;  // in use or kept
  [[nodiscard]] std::uint64_t limit_bytes() const { return slots_max_ * slot_bytes; }

 private:
  friend class PinnedSlot;
  void give_back(std::byte* data, PinnedUse use);
  // Of a pool of one slot, that one.
  [[nodiscard]] std::uint64_t transfers_max() const { return (slots_max_ + 1) / 2; }

  Gpu& gpu_;
  std::uint64_t const slots_max_;
  mutable std::mutex mutex_;
  std::vector<std::byte*> free_;
  std::uint64_t slots_ = 0;
  std::uint64_t transfers_ = 0;  // slots that they have
};

}  // namespace chorus::devices
