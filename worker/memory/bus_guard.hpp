// What happens when a file that is mapped here is truncated by somebody else: reading it raises SIGBUS.
//
// A guarded range does not end the process. The missing pages are replaced by zeros that nobody shares, and the range
// is marked: whoever reads it asks is_broken() before it believes what it read.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>

namespace chorus::memory {

class BusGuard {
 public:
  // Page-aligned. The first guard of the process installs the signal handler; other faults go on to whatever handled
  // them before. Terminates the process if more than 4096 ranges are guarded at once.
  explicit BusGuard(std::span<std::byte> range);
  ~BusGuard();  // before the range is unmapped
  BusGuard(BusGuard const&) = delete;
  BusGuard& operator=(BusGuard const&) = delete;

  // Any thread. Once true it stays so.
  [[nodiscard]] bool is_broken() const { return broken_->load(std::memory_order_acquire); }

 private:
  std::size_t slot_;
  std::atomic<bool> const* broken_;
};

}  // namespace chorus::memory
