#include "worker/memory/arena.hpp"

#include <algorithm>
#include <utility>

#include "collectives/core/assert.hpp"
#include "worker/memory/errc.hpp"
#include "worker/memory/page.hpp"

namespace chorus::memory {
namespace {

constexpr std::uint64_t line_bytes = 64;
// Memory that is kept for the next block: to get it costs much more than to use it.
constexpr std::size_t empty_units_max = 16;

std::uint64_t rounded(std::uint64_t size, std::uint64_t unit) { return (size + unit - 1) / unit * unit; }

std::uint64_t alignment_of(std::uint64_t size) {
  if (size >= region_unit_bytes) return region_unit_bytes;
  return size >= page_bytes ? page_bytes : line_bytes;
}

}  // namespace

Arena::Arena(std::unique_ptr<SharedRegion> region)
    : region_(std::move(region)), top_(region_->ticket().capacity_bytes) {
  free_.emplace(region_head_bytes, top_ - region_head_bytes);
}

std::uint64_t Arena::place_of(std::byte const* at) const {
  return static_cast<std::uint64_t>(at - region_->mapping().bytes().data());
}

std::optional<std::uint64_t> Arena::take(std::uint64_t size, std::uint64_t alignment) {
  for (auto const& [offset, room] : free_) {
    auto const from = rounded(offset, alignment);
    auto const skipped = from - offset;
    if (skipped > room || size > room - skipped) continue;
    auto const rest = room - skipped - size;
    free_.erase(offset);
    if (skipped != 0) free_.emplace(from - skipped, skipped);
    if (rest != 0) free_.emplace(from + size, rest);
    return from;
  }
  return std::nullopt;
}

void Arena::give_back(std::uint64_t offset, std::uint64_t size) {
  auto const next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + size) {
    size += next->second;
    free_.erase(next);
  }
  auto const after = free_.lower_bound(offset);
  if (after != free_.begin()) {
    auto const before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += size;
      return;
    }
  }
  free_.emplace(offset, size);
}

Status Arena::use_units(std::uint64_t offset, std::uint64_t size) {
  auto const first = offset / region_unit_bytes * region_unit_bytes;
  // From the first to the last unit that is not in use: those between are given memory again, which does nothing.
  std::uint64_t from = 0, to = 0;
  for (auto unit = first; unit < offset + size; unit += region_unit_bytes) {
    if (blocks_in_unit_.contains(unit) || empty_units_.contains(unit)) continue;
    if (to == 0) from = unit;
    to = unit + region_unit_bytes;
  }
  if (to != 0)
    if (auto backed = region_->back(from, std::min(to, top_) - from); backed.has_error()) return backed;
  for (auto unit = first; unit < offset + size; unit += region_unit_bytes) {
    ++blocks_in_unit_[unit];
    empty_units_.erase(unit);
  }
  return ok();
}

void Arena::leave_units(std::uint64_t offset, std::uint64_t size) {
  for (auto unit = offset / region_unit_bytes * region_unit_bytes; unit < offset + size; unit += region_unit_bytes) {
    auto const found = blocks_in_unit_.find(unit);
    if (--found->second != 0) continue;
    blocks_in_unit_.erase(found);
    if (empty_units_.size() < empty_units_max) {
      empty_units_.insert(unit);
      continue;
    }
    region_->release(std::max(unit, region_head_bytes), unit + region_unit_bytes - std::max(unit, region_head_bytes));
  }
}

Result<std::span<std::byte>> Arena::allocate(std::uint64_t size_bytes) {
  auto const capacity = region_->ticket().capacity_bytes;
  std::lock_guard const lock(mutex_);
  auto const full = [&] {
    return Error(MemoryErrc::unavailable, std::to_string(size_bytes) + " bytes asked for, " +
                                              std::to_string(used_bytes_) + " of " + std::to_string(capacity) +
                                              " in use");
  };
  if (size_bytes > capacity) return full();
  auto const unit = size_bytes >= page_bytes ? page_bytes : line_bytes;
  auto const size = rounded(std::max<std::uint64_t>(size_bytes, 1), unit);
  auto const offset = take(size, alignment_of(size));
  if (!offset) return full();
  if (auto backed = use_units(*offset, size); backed.has_error()) {
    give_back(*offset, size);
    return backed.error();
  }
  used_.emplace(*offset, Extent{size, false});
  used_bytes_ += size;
  return region_->mapping().at(*offset, size).first(size_bytes);
}

void Arena::free(std::byte* block) {
  std::lock_guard const lock(mutex_);
  auto const found = used_.find(place_of(block));
  CHORUS_ASSERT(found != used_.end(), "a block is freed once, by its beginning");
  auto const [offset, extent] = *found;
  used_.erase(found);
  used_bytes_ -= extent.size;
  leave_units(offset, extent.size);
  changes_.fetch_add(1, std::memory_order_release);
  if (!extent.is_withdrawn) return give_back(offset, extent.size);
  --withdrawn_;
}

Result<std::span<std::byte>> Arena::allocate_once(std::uint64_t size_bytes) {
  auto const size = rounded(std::max<std::uint64_t>(size_bytes, 1), page_bytes);
  auto const room = rounded(size, region_unit_bytes);
  std::lock_guard const lock(mutex_);
  auto const last = free_.empty() ? free_.end() : std::prev(free_.end());
  if (last == free_.end() || last->first + last->second != top_ || room > last->second)
    return Error(MemoryErrc::unavailable, "no room for " + std::to_string(size) + " bytes at the end of the region");
  top_ -= room;
  last->second -= room;
  if (last->second == 0) free_.erase(last);
  if (auto backed = region_->back(top_, size); backed.has_error()) return backed.error();
  used_bytes_ += size;
  return region_->mapping().at(top_, size).first(size_bytes);
}

void Arena::retire(std::span<std::byte> block) {
  auto const size = rounded(std::max<std::uint64_t>(block.size(), 1), page_bytes);
  region_->release(place_of(block.data()), size);
  std::lock_guard const lock(mutex_);
  used_bytes_ -= size;
}

bool Arena::owns(std::byte const* block) const {
  auto const all = region_->mapping().bytes();
  auto const begin = reinterpret_cast<std::uintptr_t>(all.data()), at = reinterpret_cast<std::uintptr_t>(block);
  return at >= begin && at - begin < all.size();
}

std::optional<std::uint64_t> Arena::offset_of(std::span<std::byte const> bytes) const {
  auto const all = region_->mapping().bytes();
  auto const begin = reinterpret_cast<std::uintptr_t>(all.data());
  auto const at = reinterpret_cast<std::uintptr_t>(bytes.data());
  if (at < begin || at - begin > all.size() || bytes.size() > all.size() - (at - begin)) return std::nullopt;
  auto const offset = static_cast<std::uint64_t>(at - begin);
  std::lock_guard const lock(mutex_);
  if (withdrawn_ == 0) return offset;
  bool const is_shared = all_blocks(offset, bytes.size(), [](Extent const& block) { return !block.is_withdrawn; });
  return is_shared ? std::optional(offset) : std::nullopt;
}

std::map<std::uint64_t, Arena::Extent>::const_iterator Arena::first_of(std::uint64_t offset) const {
  auto const after = used_.upper_bound(offset);
  if (after == used_.begin()) return after;
  auto const before = std::prev(after);
  return offset - before->first < before->second.size ? before : after;
}

template <class Holds>
bool Arena::all_blocks(std::uint64_t offset, std::uint64_t size, Holds const& holds) const {
  for (auto block = first_of(offset); block != used_.end() && block->first < offset + size; ++block)
    if (!holds(block->second)) return false;
  return true;
}

bool Arena::has_own_pages(std::span<std::byte const> bytes) const {
  std::lock_guard const lock(mutex_);
  return all_blocks(place_of(bytes.data()), bytes.size(), [](Extent const& block) { return block.size >= page_bytes; });
}

Status Arena::withdraw(std::span<std::byte const> bytes) {
  if (bytes.empty()) return ok();
  auto const offset = place_of(bytes.data());
  std::lock_guard const lock(mutex_);
  auto const first = first_of(offset);
  CHORUS_ASSERT(first != used_.end() && first->first <= offset, "what is withdrawn was allocated");
  if (auto done = region_->withdraw(offset, bytes.size()); done.has_error()) return done;
  for (auto block = used_.find(first->first); block != used_.end() && block->first < offset + bytes.size(); ++block)
    if (!std::exchange(block->second.is_withdrawn, true)) ++withdrawn_;
  changes_.fetch_add(1, std::memory_order_release);
  return ok();
}

std::uint64_t Arena::used_bytes() const {
  std::lock_guard const lock(mutex_);
  return used_bytes_;
}

}  // namespace chorus::memory
