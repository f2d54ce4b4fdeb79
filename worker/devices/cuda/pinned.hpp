// Pinned host memory for staging, in slots of one size, up to a bound that is stated: the system cannot swap it out.
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

// Who takes a slot. Transfers of clients get half of the slots at most, so that however many there are, runs have the
// rest.
enum class PinnedUse : bool { run, transfer };

// A slot, or a few in a row, given back at the end. The pool outlives it.
class PinnedSlot {
 public:
  PinnedSlot(PinnedPool& pool, std::span<std::byte> memory, PinnedUse use) : pool_(&pool), memory_(memory), use_(use) {}
  PinnedSlot(PinnedSlot&& other) noexcept;
  PinnedSlot& operator=(PinnedSlot&&) = delete;
  ~PinnedSlot();

  [[nodiscard]] std::span<std::byte> bytes() const { return memory_; }

 private:
  PinnedPool* pool_;
  std::span<std::byte> memory_;  // empty once it was moved from
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

  // Up to 32 slots in a row. Errors: GpuErrc::out_of_memory at the bound, also where those that are free do not lie in
  // a row, and where the system has no more; lost.
  [[nodiscard]] Result<PinnedSlot> take(PinnedUse use = PinnedUse::run, unsigned slots = 1);

  [[nodiscard]] std::uint64_t pinned_bytes() const;  // in use or kept
  [[nodiscard]] std::uint64_t limit_bytes() const { return slots_max_ * slot_bytes; }

 private:
  friend class PinnedSlot;
  // Slots that were pinned together.
  struct Row {
    std::byte* data = nullptr;
    unsigned slots = 0;
    std::uint32_t taken = 0;  // by bit
  };
  struct Place {
    Row* row = nullptr;
    unsigned first = 0;
  };
  void give_back(std::span<std::byte> memory, PinnedUse use);
  // In the row that has the fewest to spare; no row: nowhere.
  [[nodiscard]] Place find_free(unsigned slots);
  [[nodiscard]] Error none_is_free(unsigned slots) const;
  [[nodiscard]] std::string described(std::uint64_t slots) const;
  // Of a pool of one slot, that one.
  [[nodiscard]] std::uint64_t transfers_max() const { return (slots_max_ + 1) / 2; }

  Gpu& gpu_;
  std::uint64_t const slots_max_;
  mutable std::mutex mutex_;
  std::vector<Row> rows_;
  std::uint64_t slots_ = 0;
  std::uint64_t transfers_ = 0;  // slots that they have
};

}  // namespace chorus::devices
