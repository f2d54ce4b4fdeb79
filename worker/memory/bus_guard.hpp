// What happens when a file that is mapped here is truncated by somebody else: reading it raises SIGBUS.
//
// A guarded range does not end the process. The missing pages are replaced by zeros that nobody shares, up to 2 MiB
// from the one that was looked for on, and the range is marked: whoever reads it asks is_broken() before it believes
// what it read. What nobody has read yet, is_whole() asks the system about.
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

  // Page-aligned. The first guard of the process installs the signal handler; other faults go on to whatever handled
  // them before. Errors: MemoryErrc::unavailable: so many ranges are guarded already. `whole` outlives this one, and is
  // broken as well once this one is: what it guards is shown here, too.
  [[nodiscard]] static Result<BusGuard> over(std::span<std::byte> range, BusGuard const* whole = nullptr);
  BusGuard(BusGuard&& other) noexcept;
  ~BusGuard();  // before the range is unmapped
  BusGuard& operator=(BusGuard&&) = delete;

  // Any thread. Once true it stays so.
  [[nodiscard]] bool is_broken() const { return broken_->load(std::memory_order_acquire); }
  // Not broken, and the file of this descriptor, which is mapped here up to that byte of it, still reaches so far. A
  // system call.
  [[nodiscard]] bool is_whole(int descriptor, std::uint64_t end_bytes) const;

 private:
  explicit BusGuard(std::size_t slot);
  std::size_t slot_;
  std::atomic<bool> const* broken_;  // null: moved from
};

}  // namespace chorus::memory
