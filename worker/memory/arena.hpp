// Memory blocks in a region that others on the host can map.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "worker/memory/aliases.hpp"
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
  // retire() has given the memory back. Small ones lie close together, so that places last; where there is no memory,
  // none is lost.
  [[nodiscard]] Result<std::span<std::byte>> allocate_once(std::uint64_t size_bytes);
  // The block, or whole pages of it.
  void retire(std::span<std::byte> block);
  // The same, but not yet: others may still read there. Of all that was left so the newest 64 MiB stay.
  void retire_later(std::span<std::byte> block);

  // Whether the block is one of this arena's, withdrawn or not.
  [[nodiscard]] bool owns(std::byte const* block) const;

  // Where in the region these bytes are; nothing if they are elsewhere, or were withdrawn.
  [[nodiscard]] std::optional<std::uint64_t> offset_of(std::span<std::byte const> bytes) const;

  // From now on `bytes`, which show the pages of a block that was allocated, count as it, until they do no longer.
  void show_at(std::span<std::byte> bytes, std::byte* block) { aliases_.add(bytes, block); }
  void show_no_longer(std::byte* at) { aliases_.remove(at); }

  // Whether these bytes, which lie in the arena, share no page with other blocks: then to withdraw them takes nobody
  // else's memory along.
  [[nodiscard]] bool has_own_pages(std::span<std::byte const> bytes) const;

  // Where others may still write, though nobody looks there.
  struct Withdrawn {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
  };
  // See SharedRegion::withdraw. The blocks that these bytes belong to stay usable, and are not shared any more until
  // they are freed; then their memory goes, and what was withdrawn is not used again before readmit(). If it fails,
  // others may still write there, and its place is never used again.
  [[nodiscard]] Result<Withdrawn> withdraw(std::span<std::byte const> bytes);
  // Nobody writes there any more on account of that withdrawal. Once for each.
  void readmit(Withdrawn const& place);

  // As long as this stays the same, what offset_of() and has_own_pages() have said of blocks that were in use holds.
  [[nodiscard]] std::uint64_t changes() const { return changes_.load(std::memory_order_acquire); }

  [[nodiscard]] std::uint64_t used_bytes() const;

 private:
  struct Extent {
    std::uint64_t size = 0;
    bool is_withdrawn = false;
  };

  struct Part {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    bool is_exposed = false;
  };

  [[nodiscard]] std::uint64_t place_of(std::byte const* at) const;
  // With the lock held. The first block that these bytes have a part in; what is behind their end begins there or
  // later.
  [[nodiscard]] std::map<std::uint64_t, Extent>::const_iterator first_of(std::uint64_t offset) const;
  template <class Holds>
  [[nodiscard]] bool all_blocks(std::uint64_t offset, std::uint64_t size, Holds const& holds) const;
  [[nodiscard]] std::optional<std::uint64_t> take(std::uint64_t size, std::uint64_t alignment);
  [[nodiscard]] std::optional<std::uint64_t> take_units_at_the_end(std::uint64_t size);
  void give_back(std::uint64_t offset, std::uint64_t size);
  // Where there is room for a block of allocate_once(): in units of such blocks, if need be in new ones.
  [[nodiscard]] std::optional<std::uint64_t> room_for_once(std::uint64_t size);
  void keep_for_once(std::uint64_t offset, std::uint64_t size);
  // These bytes, cut where what others may write to begins and ends.
  [[nodiscard]] std::vector<Part> parts_of(std::uint64_t offset, std::uint64_t size) const;
  void recover(std::uint64_t offset, std::uint64_t size);
  // Memory comes and goes in whole units, so that small blocks share huge pages too.
  [[nodiscard]] Status use_units(std::uint64_t offset, std::uint64_t size);
  void leave_units(std::uint64_t offset, std::uint64_t size);
  [[nodiscard]] bool has_memory(std::uint64_t unit) const {
    return blocks_in_unit_.contains(unit) || empty_units_.contains(unit);
  }

  std::unique_ptr<SharedRegion> const region_;
  Aliases aliases_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> free_;  // offset to size; neighbours are merged
  std::map<std::uint64_t, Extent> used_;
  std::map<std::uint64_t, std::uint64_t> blocks_in_unit_;
  std::set<std::uint64_t> empty_units_;          // that still have memory
  std::map<std::uint64_t, std::uint64_t> once_;  // offset to size: not used yet, in units of blocks of allocate_once()
  std::deque<std::span<std::byte>> left_;        // to be retired, oldest first
  std::uint64_t left_bytes_ = 0;
  // Offset to size: what was withdrawn and not readmitted, in blocks that are in use, or in none, and then in no use.
  std::multimap<std::uint64_t, std::uint64_t> exposed_;
  std::uint64_t used_bytes_ = 0;
  std::atomic<std::uint64_t> withdrawn_{0};  // blocks in use
  std::atomic<std::uint64_t> changes_{0};    // blocks that were freed or withdrawn
};

}  // namespace chorus::memory
