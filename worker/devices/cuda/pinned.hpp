// Pinned host memory for staging, in slots of one size, up to a limit, because the system cannot swap it out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "worker/devices/cuda/gpu.hpp"

namespace chorus::devices {

class PinnedPool;

// The user of a slot. Clients' transfers get at most half of the slots, so that the rest remains for runs.
enum class PinnedUse : bool { run, transfer };

// Owns one slot or several adjacent ones, and returns them to the pool, which outlives it.
class PinnedSlot {
 public:
  PinnedSlot(PinnedPool& pool, std::span<std::byte> memory, PinnedUse use) : pool_(&pool), memory_(memory), use_(use) {}
  PinnedSlot(PinnedSlot&& other) noexcept;
  PinnedSlot& operator=(PinnedSlot&&) = delete;
  ~PinnedSlot();

  [[nodiscard]] std::span<std::byte> bytes() const { return memory_; }

 private:
  PinnedPool* pool_;
  std::span<std::byte> memory_;  // empty after a move
  PinnedUse use_;
};

// Thread-safe. Keeps slots for reuse, because pinning memory takes a millisecond. The GPU outlives it.
class PinnedPool {
 public:
  static constexpr std::uint64_t slot_bytes = 1 << 20;

  PinnedPool(Gpu& gpu, std::uint64_t limit_bytes) : gpu_(gpu), slots_max_(limit_bytes / slot_bytes) {}
  ~PinnedPool();
  PinnedPool(PinnedPool const&) = delete;
  PinnedPool& operator=(PinnedPool const&) = delete;

  // Takes up to 32 adjacent slots. Errors: GpuErrc::out_of_memory at the limit, if the free slots are not adjacent, or
  // if the system has no memory; lost.
  [[nodiscard]] Result<PinnedSlot> take(PinnedUse use = PinnedUse::run, unsigned slots = 1);

  [[nodiscard]] std::uint64_t pinned_bytes() const;  // in use or kept
  [[nodiscard]] std::uint64_t limit_bytes() const { return slots_max_ * slot_bytes; }

 private:
  friend class PinnedSlot;
  // Adjacent slots that were pinned together.
  struct Row {
    std::byte* data = nullptr;
    unsigned slots = 0;
    std::uint32_t taken = 0;  // one bit per slot
  };
  struct Place {
    Row* row = nullptr;
    unsigned first = 0;
  };
  void give_back(std::span<std::byte> memory, PinnedUse use);
  // Finds free slots in the row with the fewest free ones; `row` is null if there are none.
  [[nodiscard]] Place find_free(unsigned slots);
  [[nodiscard]] Error none_is_free(unsigned slots) const;
  [[nodiscard]] std::string described(std::uint64_t slots) const;
  // At least one slot, also in a pool of one.
  [[nodiscard]] std::uint64_t transfers_max() const { return (slots_max_ + 1) / 2; }

  Gpu& gpu_;
  std::uint64_t const slots_max_;
  mutable std::mutex mutex_;
  std::vector<Row> rows_;
  std::uint64_t slots_ = 0;
  std::uint64_t transfers_ = 0;  // slots used by transfers
};

}  // namespace chorus::devices
