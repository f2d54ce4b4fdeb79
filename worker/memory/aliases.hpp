// Second addresses of an arena's blocks in this process: registered memory, which is mapped to the same pages.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <shared_mutex>
#include <span>

#include "collectives/core/assert.hpp"

namespace chorus::memory {

// Thread-safe.
class Aliases {
 public:
  void add(std::span<std::byte> shown, std::byte* block) {
    std::unique_lock const lock(mutex_);
    bool const is_new = all_.emplace(shown.data(), Alias{shown.size(), block}).second;
    CHORUS_ASSERT(is_new, "shown once");
    ++count_;
  }
  void remove(std::byte* shown) {
    std::unique_lock const lock(mutex_);
    auto const removed = all_.erase(shown);
    CHORUS_ASSERT(removed == 1, "what is shown no longer was");
    --count_;
  }
  // Returns the same bytes at the arena's own addresses, or `bytes` if they are no alias.
  [[nodiscard]] std::span<std::byte const> resolve(std::span<std::byte const> bytes) const {
    if (count_.load(std::memory_order_acquire) == 0) return bytes;
    std::shared_lock const lock(mutex_);
    auto const after = all_.upper_bound(bytes.data());
    if (after == all_.begin()) return bytes;
    auto const& [shown, alias] = *std::prev(after);
    auto const at = static_cast<std::size_t>(bytes.data() - shown);
    if (at > alias.bytes || bytes.size() > alias.bytes - at) return bytes;
    return {alias.block + at, bytes.size()};
  }

 private:
  struct Alias {
    std::size_t bytes;
    std::byte* block;
  };
  mutable std::shared_mutex mutex_;
  std::map<std::byte const*, Alias, std::less<>> all_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace chorus::memory
