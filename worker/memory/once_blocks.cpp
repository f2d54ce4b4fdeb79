// Arena's blocks of allocate_once(), and how they are retired.
#include <algorithm>
#include <chrono>

#include "worker/memory/arena.hpp"
#include "worker/memory/pages/errc.hpp"
#include "worker/memory/pages/page.hpp"

namespace chorus::memory {
namespace {

constexpr std::uint64_t left_bytes_max = 64u << 20;

}  // namespace

std::optional<std::uint64_t> Arena::room_for_once(std::uint64_t size) {
  auto const fits = std::ranges::find_if(once_, [size](auto const& room) {
    // The alignment of alignment_of().
    return room.second >= size && (size < region_unit_bytes || room.first % region_unit_bytes == 0);
  });
  if (fits != once_.end()) return fits->first;
  auto const units = rounded_up(size, region_unit_bytes);
  auto const from = free_.take_at_the_end(units, region_unit_bytes);
  if (!from) return std::nullopt;
  for (auto unit = *from; unit < *from + units; unit += region_unit_bytes)
    if (units_.take_empty(unit) && !region_->release(unit, region_unit_bytes))
      std::ranges::fill(region_->mapping().at(unit, region_unit_bytes), std::byte{0});
  once_.emplace(*from, units);
  return from;
}

// Whole unused units become free for all blocks again.
void Arena::keep_for_once(std::uint64_t offset, std::uint64_t size) {
  if (offset % region_unit_bytes == 0 && size % region_unit_bytes == 0)
    free_.give_back(offset, size);
  else
    once_.emplace(offset, size);
}

Result<std::span<std::byte>> Arena::allocate_once(std::uint64_t size_bytes) {
  auto const capacity = region_->ticket().capacity_bytes;
  auto const size = rounded_up(std::max<std::uint64_t>(std::min(size_bytes, capacity), 1), page_bytes);
  if (auto const there = region_->available_bytes(); size_bytes <= capacity && size > there)
    return lacks(size_bytes, there);
  std::uint64_t at = 0;
  {
    std::lock_guard const lock(mutex_);
    auto const found = size_bytes <= capacity ? room_for_once(size) : std::nullopt;
    if (!found)
      return Error(MemoryErrc::unavailable, "no room for " + std::to_string(size_bytes) + " bytes in the region");
    at = *found;
    if (auto const room = once_.extract(at).mapped(); room != size) once_.emplace(at + size, room - size);
  }
  auto const backed = region_->back(at, size);
  if (backed.has_error()) static_cast<void>(region_->release(at, size));
  std::lock_guard const lock(mutex_);
  if (backed.has_error()) {
    auto const behind = once_.find(at + size);
    auto const rest = behind != once_.end() ? once_.extract(behind).mapped() : 0;
    keep_for_once(at, size + rest);
    return backed.error();
  }
  used_bytes_ += size;
  return region_->mapping().at(at, size).first(size_bytes);
}

void Arena::retire(std::span<std::byte> block) {
  auto const size = rounded_up(std::max<std::uint64_t>(block.size(), 1), page_bytes);
  auto const at = place_of(block.data());
  static_cast<void>(region_->release(at, page_bytes));
  static_cast<void>(region_->release(at + page_bytes, size - page_bytes));
  std::lock_guard const lock(mutex_);
  used_bytes_ -= size;
}

void Arena::retire_later(std::span<std::byte> block) {
  std::vector<std::span<std::byte>> due;
  {
    std::lock_guard const lock(mutex_);
    left_.push_back({block, std::chrono::steady_clock::now()});
    left_bytes_ += block.size();
    for (; left_bytes_ > left_bytes_max; left_.pop_front()) {
      due.push_back(left_.front().block);
      left_bytes_ -= due.back().size();
    }
  }
  for (auto const oldest : due) retire(oldest);
}

std::uint64_t Arena::retire_left(TimePoint since) {
  std::uint64_t retired = 0;
  for (;;) {
    std::unique_lock lock(mutex_);
    if (left_.empty() || left_.front().since > since) return retired;
    auto const block = left_.front().block;
    left_.pop_front();
    left_bytes_ -= block.size();
    lock.unlock();
    retire(block);
    retired += block.size();
  }
}

}  // namespace chorus::memory
