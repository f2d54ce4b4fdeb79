// Memory blocks in a region that others on the host can map.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>

#include "worker/memory/shared_region.hpp"

namespace chorus::memory {

// Thread-safe. Blocks do not outlive the arena.
class Arena {
 public:
  explicit Arena(std::unique_ptr<SharedRegion> region);
  Arena(Arena const&) = delete;
  Arena& operator=(Arena const&) = delete;

  [[nodiscard]] Ticket const& ticket() const { return region_->ticket(); }
  [[nodiscard]] Mapping const& mapping() const { return region_->mapping(); }

  // Aligned to 64 bytes, from a page on to pages, from 2 MiB on to huge pages. The contents are unspecified. Errors:
  // MemoryErrc::unavailable: the region is full, or the system has no memory (in a container, its /dev/shm).
  [[nodiscard]] Result<std::span<std::byte>> allocate(std::uint64_t size_bytes);
  void free(std::byte* block);

  // Zeros in pages of their own, whose place is never used again: others may write there at any time, also long after
  // retire() has given the memory back.
  [[nodiscard]] Result<std::span<std::byte>> allocate_once(std::uint64_t size_bytes);
  void retire(std::span<std::byte> block);

  // Whether the block is one of this arena's, withdrawn or not.
  [[nodiscard]] bool owns(std::byte const* block) const;

  // Where in the region these bytes are; nothing if they are elsewhere, or were withdrawn.
  [[nodiscard]] std::optional<std::uint64_t> offset_of(std::span<std::byte const> bytes) const;

  // Whether these bytes, which lie in the arena, share no page with other blocks: then to withdraw them takes nobody
  // else's memory along.
  [[nodiscard]] bool has_own_pages(std::span<std::byte const> bytes) const;

  // See SharedRegion::withdraw. The blocks that these bytes belong to stay usable, and are not shared any more until
  // they are freed; their places are not used again. If it fails, others may still write there.
  [[nodiscard]] Status withdraw(std::span<std::byte const> bytes);

  // As long as this stays the same, what offset_of() and has_own_pages() have said of blocks that were in use holds.
  [[nodiscard]] std::uint64_t changes() const { return changes_.load(std::memory_order_acquire); }

  [[nodiscard]] std::uint64_t used_bytes() const;

 private:
  struct Extent {
    std::uint64_t size = 0;
    bool is_withdrawn = false;
  };

  [[nodiscard]] std::uint64_t place_of(std::byte const* at) const;
  // With the lock held. The first block that these bytes have a part in; what is behind their end begins there or
  // later.
  [[nodiscard]] std::map<std::uint64_t, Extent>::const_iterator first_of(std::uint64_t offset) const;
  template <class Holds>
  [[nodiscard]] bool all_blocks(std::uint64_t offset, std::uint64_t size, Holds const& holds) const;
  [[nodiscard]] std::optional<std::uint64_t> take(std::uint64_t size, std::uint64_t alignment);
  void give_back(std::uint64_t offset, std::uint64_t size);
  // Memory comes and goes in whole units, so that small blocks share huge pages too.
  [[nodiscard]] Status use_units(std::uint64_t offset, std::uint64_t size);
  void leave_units(std::uint64_t offset, std::uint64_t size);

  std::unique_ptr<SharedRegion> const region_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> free_;  // offset to size; neighbours are merged
  std::map<std::uint64_t, Extent> used_;
  std::map<std::uint64_t, std::uint64_t> blocks_in_unit_;
  std::set<std::uint64_t> empty_units_;  // that still have memory
  std::uint64_t top_;                    // blocks of allocate_once() lie above, each in units of its own
  std::uint64_t used_bytes_ = 0;
  std::uint64_t withdrawn_ = 0;
  std::atomic<std::uint64_t> changes_{0};  // blocks that were freed or withdrawn
};

}  // namespace chorus::memory
