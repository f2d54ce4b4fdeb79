#include "worker/memory/arena.hpp"

#include <algorithm>
#include <utility>

#include "collectives/core/assert.hpp"
#include "worker/memory/errc.hpp"
#include "worker/memory/page.hpp"
#include "worker/memory/private_copy.hpp"

namespace chorus::memory {
namespace {

constexpr std::uint64_t line_bytes = 64;
// Memory that is kept for the next block: to get it costs much more than to use it.
constexpr std::size_t empty_units_max = 16;
constexpr std::uint64_t left_bytes_max = 64u << 20;

std::uint64_t rounded(std::uint64_t size, std::uint64_t unit) { return (size + unit - 1) / unit * unit; }

std::uint64_t alignment_of(std::uint64_t size) {
  if (size >= region_unit_bytes) return region_unit_bytes;
  return size >= page_bytes ? page_bytes : line_bytes;
}

}  // namespace

Arena::Arena(std::unique_ptr<SharedRegion> region) : region_(std::move(region)) {
  free_.emplace(region_head_bytes, region_->ticket().capacity_bytes - region_head_bytes);
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

std::optional<std::uint64_t> Arena::take_units_at_the_end(std::uint64_t size) {
  for (auto room = free_.rbegin(); room != free_.rend(); ++room) {
    auto const [offset, bytes] = *room;
    auto const end = (offset + bytes) / region_unit_bytes * region_unit_bytes;
    if (end < offset || end - offset < size) continue;
    auto const from = end - size;
    free_.erase(offset);
    if (from != offset) free_.emplace(offset, from - offset);
    if (end != offset + bytes) free_.emplace(end, offset + bytes - end);
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
    if (has_memory(unit)) continue;
    if (to == 0) from = unit;
    to = unit + region_unit_bytes;
  }
  // But for what nobody uses.
  for (auto const& part : parts_of(from, to - from))
    if (!part.is_exposed)
      if (auto backed = region_->back(part.offset, part.size); backed.has_error()) return backed;
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
    auto const parts = parts_of(unit, region_unit_bytes);
    bool const is_lost = std::ranges::all_of(parts, [](Part const& part) { return part.is_exposed; });
    if (!is_lost && empty_units_.size() < empty_units_max) {
      empty_units_.insert(unit);
      continue;
    }
    auto const from = std::max(unit, region_head_bytes);
    // Should it fail, the memory stays in use until the region goes.
    static_cast<void>(region_->release(from, unit + region_unit_bytes - from));
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
  // Without its mapping the place is lost.
  if (extent.is_withdrawn && !region_->readmit(offset, extent.size)) exposed_.emplace(offset, extent.size);
  leave_units(offset, extent.size);
  changes_.fetch_add(1, std::memory_order_release);
  if (!extent.is_withdrawn) return give_back(offset, extent.size);
  --withdrawn_;
  for (auto const& part : parts_of(offset, extent.size)) {
    if (part.is_exposed)
      static_cast<void>(region_->release(part.offset, part.size));
    else
      give_back(part.offset, part.size);
  }
}

std::optional<std::uint64_t> Arena::room_for_once(std::uint64_t size) {
  auto const fits = std::ranges::find_if(once_, [size](auto const& room) {
    // As in alignment_of().
    return room.second >= size && (size < region_unit_bytes || room.first % region_unit_bytes == 0);
  });
  if (fits != once_.end()) return fits->first;
  auto const units = rounded(size, region_unit_bytes);
  auto const from = take_units_at_the_end(units);
  if (!from) return std::nullopt;
  for (auto unit = *from; unit < *from + units; unit += region_unit_bytes)
    if (empty_units_.erase(unit) != 0 && !region_->release(unit, region_unit_bytes))
      std::ranges::fill(region_->mapping().at(unit, region_unit_bytes), std::byte{0});
  once_.emplace(*from, units);
  return from;
}

// Units of which nothing was used are anybody's again.
void Arena::keep_for_once(std::uint64_t offset, std::uint64_t size) {
  if (offset % region_unit_bytes == 0 && size % region_unit_bytes == 0)
    give_back(offset, size);
  else
    once_.emplace(offset, size);
}

Result<std::span<std::byte>> Arena::allocate_once(std::uint64_t size_bytes) {
  auto const capacity = region_->ticket().capacity_bytes;
  auto const size = rounded(std::max<std::uint64_t>(std::min(size_bytes, capacity), 1), page_bytes);
  std::lock_guard const lock(mutex_);
  auto const at = size_bytes <= capacity ? room_for_once(size) : std::nullopt;
  if (!at) return Error(MemoryErrc::unavailable, "no room for " + std::to_string(size_bytes) + " bytes in the region");
  auto const backed = region_->back(*at, size);
  auto const room = once_.extract(*at).mapped();
  if (backed.has_error()) {
    keep_for_once(*at, room);
    return backed.error();
  }
  if (room != size) once_.emplace(*at + size, room - size);
  used_bytes_ += size;
  return region_->mapping().at(*at, size).first(size_bytes);
}

void Arena::retire(std::span<std::byte> block) {
  auto const size = rounded(std::max<std::uint64_t>(block.size(), 1), page_bytes);
  static_cast<void>(region_->release(place_of(block.data()), size));
  std::lock_guard const lock(mutex_);
  used_bytes_ -= size;
}

void Arena::retire_later(std::span<std::byte> block) {
  std::vector<std::span<std::byte>> due;
  {
    std::lock_guard const lock(mutex_);
    left_.push_back(block);
    left_bytes_ += block.size();
    for (; left_bytes_ > left_bytes_max; left_.pop_front()) {
      due.push_back(left_.front());
      left_bytes_ -= due.back().size();
    }
  }
  for (auto const oldest : due) retire(oldest);
}

bool Arena::owns(std::byte const* block) const {
  auto const all = region_->mapping().bytes();
  auto const begin = reinterpret_cast<std::uintptr_t>(all.data()), at = reinterpret_cast<std::uintptr_t>(block);
  return at >= begin && at - begin < all.size();
}

std::optional<std::uint64_t> Arena::offset_of(std::span<std::byte const> bytes) const {
  bytes = aliases_.resolve(bytes);
  auto const all = region_->mapping().bytes();
  auto const begin = reinterpret_cast<std::uintptr_t>(all.data());
  auto const at = reinterpret_cast<std::uintptr_t>(bytes.data());
  if (at < begin || at - begin > all.size() || bytes.size() > all.size() - (at - begin)) return std::nullopt;
  auto const offset = static_cast<std::uint64_t>(at - begin);
  if (withdrawn_.load(std::memory_order_acquire) == 0) return offset;  // no lock for each frame that is sent
  std::lock_guard const lock(mutex_);
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
  bytes = aliases_.resolve(bytes);
  std::lock_guard const lock(mutex_);
  return all_blocks(place_of(bytes.data()), bytes.size(), [](Extent const& block) { return block.size >= page_bytes; });
}

Result<Arena::Withdrawn> Arena::withdraw(std::span<std::byte const> bytes) {
  if (bytes.empty()) return Withdrawn{};
  auto const block_bytes = aliases_.resolve(bytes);
  auto const offset = place_of(block_bytes.data());
  bool const is_alias = block_bytes.data() != bytes.data();
  std::lock_guard const lock(mutex_);
  auto const first = first_of(offset);
  CHORUS_ASSERT(first != used_.end() && first->first <= offset, "what is withdrawn was allocated");
  // Nobody looks at a registered block but where it is shown.
  auto const done = is_alias ? put_private_copy(bytes) : region_->withdraw(offset, bytes.size());
  // Also where it failed: a block that others may write to is not to be used for something else later.
  std::uint64_t end = 0;
  for (auto block = used_.find(first->first); block != used_.end() && block->first < offset + bytes.size(); ++block) {
    if (!std::exchange(block->second.is_withdrawn, true)) ++withdrawn_;
    end = block->first + block->second.size;
  }
  auto const from = std::max(offset / page_bytes * page_bytes, first->first);
  Withdrawn const place{from, std::min(rounded(offset + bytes.size(), page_bytes), end) - from};
  exposed_.emplace(place.offset, place.size);
  changes_.fetch_add(1, std::memory_order_release);
  if (done.has_error()) return done.error();
  return place;
}

std::vector<Arena::Part> Arena::parts_of(std::uint64_t offset, std::uint64_t size) const {
  std::vector<Part> parts;
  auto const end = offset + size;
  for (auto const& [begin, bytes] : exposed_) {
    if (begin >= end || offset == end) break;
    if (begin + bytes <= offset) continue;
    if (begin > offset) parts.push_back({offset, begin - offset, false});
    auto const from = std::max(offset, begin);
    offset = std::min(begin + bytes, end);
    parts.push_back({from, offset - from, true});
  }
  if (offset != end) parts.push_back({offset, end - offset, false});
  return parts;
}

void Arena::readmit(Withdrawn const& place) {
  if (place.size == 0) return;
  std::lock_guard const lock(mutex_);
  auto const [first, last] = exposed_.equal_range(place.offset);
  auto const entry = std::find_if(first, last, [&](auto const& range) { return range.second == place.size; });
  CHORUS_ASSERT(entry != last, "what is readmitted was withdrawn");
  exposed_.erase(entry);
  for (auto const& part : parts_of(place.offset, place.size)) {
    if (part.is_exposed) continue;
    // What lies between the blocks that are in use still.
    auto at = part.offset;
    auto const end = part.offset + part.size;
    for (auto block = first_of(at); block != used_.end() && block->first < end; ++block) {
      if (block->first > at) recover(at, block->first - at);
      at = std::min(block->first + block->second.size, end);
    }
    recover(at, end - at);
  }
}

// A unit that has memory has it everywhere, and one that has none nowhere: whatever others wrote there until now.
void Arena::recover(std::uint64_t offset, std::uint64_t size) {
  auto const end = offset + size;
  while (offset != end) {
    auto const unit = offset / region_unit_bytes * region_unit_bytes;
    auto const bytes = std::min(end, unit + region_unit_bytes) - offset;
    bool const backs = has_memory(unit);
    if (!backs) static_cast<void>(region_->release(offset, bytes));
    if (!backs || region_->back(offset, bytes).has_value())
      give_back(offset, bytes);
    else
      exposed_.emplace(offset, bytes);  // lost
    offset += bytes;
  }
}

std::uint64_t Arena::used_bytes() const {
  std::lock_guard const lock(mutex_);
  return used_bytes_;
}

}  // namespace chorus::memory
