// Memory blocks in a region that other processes on the host map.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "worker/memory/aliases.hpp"
#include "worker/memory/free_ranges.hpp"
#include "worker/memory/regions/shared_region.hpp"
#include "worker/memory/unit_book.hpp"

namespace chorus::memory {

// Thread-safe. Blocks do not outlive the arena. The lock is never held while the system is asked for memory, while
// memory is copied, or while it is returned to the system. Functions that do one of these say so, and their time grows
// with the number of bytes; the others take microseconds.
class Arena {
 public:
  using TimePoint = UnitBook::TimePoint;

  explicit Arena(std::unique_ptr<SharedRegion> region);
  Arena(Arena const&) = delete;
  Arena& operator=(Arena const&) = delete;

  [[nodiscard]] Ticket const& ticket() const { return region_->ticket(); }
  [[nodiscard]] Mapping const& mapping() const { return region_->mapping(); }

  // Allocates a block with unspecified contents, aligned to 64 bytes; from a page on to pages, from 2 MiB on to huge
  // pages. Asks the system for memory. Errors: MemoryErrc::unavailable: the region is full, or the system has no memory
  // (in a container: its /dev/shm); at_ceiling.
  [[nodiscard]] Result<std::span<std::byte>> allocate(std::uint64_t size_bytes);
  // Frees a block of allocate() or reserve(). Returns memory to the system.
  void free(std::byte* block);

  // A block without memory, which prepare() adds. Errors of reserve(): unavailable, also if the system has less memory
  // than the block needs now, `about_to_come_back` included.
  struct Reserved {
    std::span<std::byte> bytes;
    bool is_prepared = false;  // the block has memory already
  };
  [[nodiscard]] Result<Reserved> reserve(std::uint64_t size_bytes, std::uint64_t about_to_come_back = 0);
  // Gives memory to a part of a reserved block, once for each part; threads may prepare several parts at a time. Asks
  // the system for memory. If it has none left for the region, a part of whole pages becomes private memory of the
  // process, and the block is not shared until it is freed. Errors: unavailable, at_ceiling.
  [[nodiscard]] Status prepare(std::span<std::byte> part);

  // Allocates a block of zeros in pages of its own whose offset is never used again: other processes may write there at
  // any time, also long after retire(). Small blocks lie close together to save offsets; a failed call uses up none.
  // Asks the system for memory.
  [[nodiscard]] Result<std::span<std::byte>> allocate_once(std::uint64_t size_bytes);
  // Ends a block of allocate_once(), or whole pages of it. Its first page reads as zeros before any other page does, so
  // a late reader that finds what it expects there has read no such zeros. Returns memory to the system.
  void retire(std::span<std::byte> block);
  // Retires a block later, because other processes may still read it: when more than 64 MiB of newer blocks wait.
  void retire_later(std::span<std::byte> block);

  // Returns true if the block belongs to this arena, withdrawn or not.
  [[nodiscard]] bool owns(std::byte const* block) const;

  // Returns the offset of these bytes in the region; nothing if they are elsewhere, or no longer shared.
  [[nodiscard]] std::optional<std::uint64_t> offset_of(std::span<std::byte const> bytes) const;

  // Makes `bytes`, a second mapping of an allocated block's pages, an alias of the block until show_no_longer().
  void show_at(std::span<std::byte> bytes, std::byte* block) { aliases_.add(bytes, block); }
  void show_no_longer(std::byte* at) { aliases_.remove(at); }

  // Returns true if these bytes of the arena share no page with other blocks, so that withdraw() takes no other block's
  // memory along.
  [[nodiscard]] bool has_own_pages(std::span<std::byte const> bytes) const;

  // A range of the region where other processes may still write, but which this process does not read any more.
  struct Withdrawn {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
  };
  // Makes these bytes private to this process (SharedRegion::withdraw). Their blocks stay usable but are not shared
  // until they are freed; the withdrawn range is not used again before readmit(). After an error other processes may
  // still write to the bytes, and their range is never used again. Copies the bytes.
  [[nodiscard]] Result<Withdrawn> withdraw(std::span<std::byte const> bytes);
  // Makes a withdrawn range usable again, when no process writes there any more. Called once for each withdrawal.
  // Returns memory to the system.
  void readmit(Withdrawn const& place);

  // While this number stays the same, results of offset_of() and has_own_pages() for blocks in use stay valid.
  [[nodiscard]] std::uint64_t changes() const { return changes_.load(std::memory_order_acquire); }

  [[nodiscard]] std::uint64_t used_bytes() const;

  // Sets the ceiling: how much of the system's memory blocks of allocate() and reserve() may have, including memory
  // that is kept for reuse and gaps between blocks. A block beyond the ceiling is refused with at_ceiling.
  void allow(std::uint64_t bytes) { ceiling_bytes_.store(bytes, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t backed_bytes() const;
  // Returns memory to the system that has been unused since `since` or longer. Returns the number of bytes.
  std::uint64_t release_unused(TimePoint since);
  // Retires the blocks of retire_later() that have waited since `since` or longer. Returns the number of bytes.
  std::uint64_t retire_left(TimePoint since);

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
  [[nodiscard]] Error full(std::uint64_t size_bytes) const;  // with mutex_ held
  [[nodiscard]] static Error lacks(std::uint64_t size_bytes, std::uint64_t there);
  // Returns the memory of these unused ranges to the system and makes the ranges free.
  void recycle(std::vector<FreeRanges::Range> const& parts);
  // Gives memory to the units of a block's bytes, except for withdrawn ranges.
  [[nodiscard]] Status back_units(std::uint64_t offset, std::uint64_t size);
  [[nodiscard]] Status back_step(std::uint64_t offset, std::uint64_t size);
  // Frees a part of a block, which lies in these units.
  void leave_units(std::uint64_t offset, std::uint64_t size);

  // With mutex_ held. Errors: at_ceiling.
  [[nodiscard]] Status check_ceiling(std::uint64_t new_bytes) const;
  // With mutex_ held. Returns the block that contains `offset`, or else the next one.
  [[nodiscard]] std::map<std::uint64_t, Extent>::const_iterator first_of(std::uint64_t offset) const;
  template <class Holds>
  [[nodiscard]] bool all_blocks(std::uint64_t offset, std::uint64_t size, Holds const& holds) const;
  // Returns an offset for a block of allocate_once(): in the units of such blocks, or else in new units.
  [[nodiscard]] std::optional<std::uint64_t> room_for_once(std::uint64_t size);
  void keep_for_once(std::uint64_t offset, std::uint64_t size);
  void no_longer_shared(Extent& block);
  // Splits these bytes into exposed parts, where other processes may write, and others.
  [[nodiscard]] std::vector<Part> parts_of(std::uint64_t offset, std::uint64_t size) const;

  std::unique_ptr<SharedRegion> const region_;
  Aliases aliases_;
  std::mutex copying_;  // held before mutex_: private copies are made one at a time
  mutable std::mutex mutex_;
  FreeRanges free_;
  std::map<std::uint64_t, Extent> used_;
  UnitBook units_;
  std::map<std::uint64_t, std::uint64_t> once_;  // offset to size: unused ranges for blocks of allocate_once()
  struct Left {
    std::span<std::byte> block;
    TimePoint since;
  };
  std::deque<Left> left_;  // blocks of retire_later(), oldest first
  std::uint64_t left_bytes_ = 0;
  // Offset to size: ranges that were withdrawn and not readmitted, within blocks in use and outside.
  std::multimap<std::uint64_t, std::uint64_t> exposed_;
  std::uint64_t used_bytes_ = 0;
  std::uint64_t coming_bytes_ = 0;  // of units that are getting memory now
  std::atomic<std::uint64_t> ceiling_bytes_{std::numeric_limits<std::uint64_t>::max()};
  std::atomic<std::uint64_t> withdrawn_{0};  // withdrawn blocks in use
  std::atomic<std::uint64_t> changes_{0};    // number of frees and withdrawals
};

}  // namespace chorus::memory
