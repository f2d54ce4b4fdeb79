// Protects this process from SIGBUS, which reading a mapped file raises after another process has truncated it.
//
// A SIGBUS in a guarded range does not end the process. The missing pages, up to 2 MiB from the faulting page on, are
// replaced by private pages of zeros, and the range is marked as broken. A reader asks is_broken() before it trusts
// what it has read. is_whole() asks the system and also detects a truncation where nothing has been read yet.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/core/result.hpp"

namespace chorus::memory {

class BusGuard {
 public:
  static constexpr std::size_t ranges_max = 4096;  // of a process, at once

  // Guards a page-aligned range. The first guard of the process installs the signal handler, which passes other faults
  // on to the handler before it. `whole`, if any, guards another mapping of the same memory: it outlives this guard and
  // becomes broken together with it. Errors: MemoryErrc::unavailable: ranges_max ranges are guarded already.
  [[nodiscard]] static Result<BusGuard> over(std::span<std::byte> range, BusGuard const* whole = nullptr);
  BusGuard(BusGuard&& other) noexcept;
  ~BusGuard();  // before the range is unmapped
  BusGuard& operator=(BusGuard&&) = delete;

  // Any thread. Once true it stays so.
  [[nodiscard]] bool is_broken() const { return broken_->load(std::memory_order_acquire); }
  // Returns true if the range is not broken and the descriptor's file still has `end_bytes` bytes, the end of the
  // mapping. A system call.
  [[nodiscard]] bool is_whole(int descriptor, std::uint64_t end_bytes) const;

 private:
  explicit BusGuard(std::size_t slot);
  std::size_t slot_;
  std::atomic<bool> const* broken_;  // null: moved from
};

}  // namespace chorus::memory
