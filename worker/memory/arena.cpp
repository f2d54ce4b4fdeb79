#include "worker/memory/arena.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <future>
#include <system_error>
#include <thread>
#include <utility>

#include "collectives/core/assert.hpp"
#include "worker/memory/pages/errc.hpp"
#include "worker/memory/pages/page.hpp"
#include "worker/memory/pages/private_copy.hpp"
#include "worker/memory/pages/touch.hpp"

namespace chorus::memory {
namespace {

constexpr std::uint64_t line_bytes = 64;
// Memory is requested and returned in steps of this size, because the system holds locks meanwhile.
constexpr std::uint64_t step_bytes = 8 * region_unit_bytes;

std::uint64_t alignment_of(std::uint64_t size) {
  if (size >= region_unit_bytes) return region_unit_bytes;
  return size >= page_bytes ? page_bytes : line_bytes;
}

// First touch is faster with several threads; with more than these the system's locks are the bottleneck.
std::uint64_t threads_max() { return std::clamp(std::thread::hardware_concurrency(), 1U, 4U); }

}  // namespace

Arena::Arena(std::unique_ptr<SharedRegion> region)
    : region_(std::move(region)), free_({region_head_bytes, region_->ticket().capacity_bytes - region_head_bytes}) {}

std::uint64_t Arena::place_of(std::byte const* at) const {
  return static_cast<std::uint64_t>(at - region_->mapping().bytes().data());
}

Error Arena::full(std::uint64_t size_bytes) const {
  return {MemoryErrc::unavailable, std::to_string(size_bytes) + " bytes asked for, " + std::to_string(used_bytes_) +
                                       " of " + std::to_string(region_->ticket().capacity_bytes) + " in use"};
}

Error Arena::lacks(std::uint64_t size_bytes, std::uint64_t there) {
  return {MemoryErrc::unavailable, std::to_string(size_bytes) + " bytes asked for, the system has " +
                                       std::to_string(there) + " for shared memory"};
}

Result<Arena::Reserved> Arena::reserve(std::uint64_t size_bytes, std::uint64_t about_to_come_back) {
  auto const is_large = size_bytes >= region_unit_bytes;
  auto const there = is_large ? region_->available_bytes() : std::uint64_t{0};
  std::lock_guard const lock(mutex_);
  if (size_bytes > region_->ticket().capacity_bytes) return full(size_bytes);
  auto const unit = size_bytes >= page_bytes ? page_bytes : line_bytes;
  auto const size = rounded_up(std::max<std::uint64_t>(size_bytes, 1), unit);
  auto const offset = free_.take(size, alignment_of(size));
  if (!offset) return full(size_bytes);
  auto const missing = units_.missing_bytes(*offset, size);
  if (is_large && missing > there && missing - there > about_to_come_back) {
    free_.give_back(*offset, size);
    return lacks(size_bytes, there);
  }
  units_.enter(*offset, size);
  used_.emplace(*offset, Extent{size, false});
  used_bytes_ += size;
  return Reserved{region_->mapping().at(*offset, size).first(size_bytes), missing == 0};
}

Status Arena::check_ceiling(std::uint64_t new_bytes) const {
  auto const ceiling = ceiling_bytes_.load(std::memory_order_relaxed);
  auto const all = units_.backed_bytes() + coming_bytes_;
  if (new_bytes == 0 || (all <= ceiling && new_bytes <= ceiling - all)) return ok();
  return Error(MemoryErrc::at_ceiling, std::to_string(new_bytes) + " bytes to be given memory, " + std::to_string(all) +
                                           " of " + std::to_string(ceiling) + " have it, gaps between blocks included");
}

Result<std::span<std::byte>> Arena::allocate(std::uint64_t size_bytes) {
  auto const reserved = reserve(size_bytes);
  if (reserved.has_error()) return reserved.error();
  if (reserved->is_prepared) return reserved->bytes;
  auto* const block = reserved->bytes.data();
  // Check the ceiling for the whole block before its first step gets memory.
  auto const within = [&] {
    std::lock_guard const lock(mutex_);
    return check_ceiling(units_.missing_bytes(place_of(block), std::max<std::uint64_t>(size_bytes, 1)));
  }();
  if (!within) {
    free(block);
    return within.error();
  }
  if (auto backed = back_units(place_of(block), std::max<std::uint64_t>(size_bytes, 1)); backed.has_error()) {
    free(block);
    return backed.error();
  }
  return reserved->bytes;
}

Status Arena::back_step(std::uint64_t offset, std::uint64_t size) {
  std::vector<UnitBook::Lacking> lacking;
  std::vector<Part> parts;
  std::uint64_t new_bytes = 0;
  {
    std::lock_guard const lock(mutex_);
    lacking = units_.lacking(offset, size);
    new_bytes = lacking.size() * region_unit_bytes;
    if (auto within = check_ceiling(new_bytes); !within) return within;
    coming_bytes_ += new_bytes;
    for (auto const& [unit, losses] : lacking)
      for (auto const& part : parts_of(unit, region_unit_bytes)) {
        if (part.is_exposed) continue;
        if (!parts.empty() && parts.back().offset + parts.back().size == part.offset)
          parts.back().size += part.size;
        else
          parts.push_back(part);
      }
  }
  // Two threads may back a unit that they share; the second call then changes nothing.
  auto status = ok();
  for (auto part = parts.begin(); part != parts.end() && status; ++part)
    status = region_->back(part->offset, part->size);
  std::lock_guard const lock(mutex_);
  coming_bytes_ -= new_bytes;
  if (status)
    for (auto const& unit : lacking) units_.has_come(unit);
  return status;
}

Status Arena::back_units(std::uint64_t offset, std::uint64_t size) {
  auto const first = offset / step_bytes, last = (offset + size - 1) / step_bytes;
  std::atomic<std::uint64_t> next{first};
  auto const back_some = [&] {
    for (auto step = next.fetch_add(1); step <= last; step = next.fetch_add(1)) {
      auto const from = std::max(offset, step * step_bytes), to = std::min(offset + size, (step + 1) * step_bytes);
      auto backed = back_step(from, to - from);
      if (backed.has_error()) {
        next = last + 1;
        return backed;
      }
    }
    return ok();
  };
  std::vector<std::future<Status>> others;
  try {
    while (others.size() + 1 < std::min(threads_max(), last - first + 1))
      others.push_back(std::async(std::launch::async, back_some));
  } catch (std::system_error const&) {}  // without more threads it takes longer
  auto status = back_some();
  for (auto& other : others)
    if (auto backed = other.get(); backed.has_error()) status = std::move(backed);
  return status;
}

Status Arena::prepare(std::span<std::byte> part) {
  if (part.empty()) return ok();
  auto const offset = place_of(part.data());
  auto backed = back_units(offset, part.size());
  if (backed.has_value() || backed.error().code == MemoryErrc::at_ceiling || part.size() % page_bytes != 0)
    return backed;
  constexpr int is_own = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  auto* const own = mmap(part.data(), part.size(), PROT_READ | PROT_WRITE, is_own, -1, 0);
  if (own == MAP_FAILED) return backed;
  static_cast<void>(region_->release(offset, part.size()));
  touch_all({static_cast<std::byte*>(own), part.size()});
  std::lock_guard const lock(mutex_);
  // Also of units that had memory: from the steps before the one that failed, or because of a neighbour.
  units_.has_gone(offset, part.size());
  no_longer_shared(used_.find(first_of(offset)->first)->second);
  return ok();
}

void Arena::no_longer_shared(Extent& block) {
  if (!std::exchange(block.is_withdrawn, true)) ++withdrawn_;
  changes_.fetch_add(1, std::memory_order_release);
}

void Arena::free(std::byte* block) {
  auto const offset = place_of(block);
  Extent extent;
  {
    std::lock_guard const lock(mutex_);
    auto const found = used_.find(offset);
    CHORUS_ASSERT(found != used_.end(), "a block is freed once, by its beginning");
    extent = found->second;
    used_.erase(found);
    used_bytes_ -= extent.size;
    if (extent.is_withdrawn) --withdrawn_;
    changes_.fetch_add(1, std::memory_order_release);
  }
  auto const end = offset + extent.size;
  for (auto from = offset; from < end;) {
    auto const to = std::min(from / step_bytes * step_bytes + step_bytes, end);
    // A range that cannot be mapped again is never used again.
    if (extent.is_withdrawn && !region_->readmit(from, to - from)) {
      std::lock_guard const lock(mutex_);
      exposed_.emplace(from, to - from);
    }
    leave_units(from, to - from);
    from = to;
  }
}

void Arena::leave_units(std::uint64_t offset, std::uint64_t size) {
  std::vector<FreeRanges::Range> going;
  std::vector<Part> exposed;
  {
    std::lock_guard const lock(mutex_);
    for (auto const& part : parts_of(offset, size)) {
      if (part.is_exposed)
        exposed.push_back(part);
      else
        free_.give_back(part.offset, part.size);
    }
    auto const is_of_use = [this](std::uint64_t unit) {
      return !std::ranges::all_of(parts_of(unit, region_unit_bytes), &Part::is_exposed);
    };
    for (auto const unit : units_.leave(offset, size, is_of_use))
      for (auto const& range : free_.take_all({unit, region_unit_bytes})) going.push_back(range);
  }
  // If this fails, the memory stays in use until the region is destroyed.
  for (auto const& part : exposed) static_cast<void>(region_->release(part.offset, part.size));
  recycle(going);
}

void Arena::recycle(std::vector<FreeRanges::Range> const& parts) {
  if (parts.empty()) return;
  for (auto const& part : parts)
    for (std::uint64_t done = 0; done < part.size; done += step_bytes)
      static_cast<void>(region_->release(part.offset + done, std::min(step_bytes, part.size - done)));
  std::lock_guard const lock(mutex_);
  for (auto const& part : parts) {
    units_.has_gone(part.offset, part.size);
    free_.give_back(part.offset, part.size);
  }
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
  if (withdrawn_.load(std::memory_order_acquire) == 0) return offset;  // no lock for every frame
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
  std::lock_guard const one_at_a_time(copying_);
  Withdrawn place;
  {
    std::lock_guard const lock(mutex_);
    auto const first = first_of(offset);
    CHORUS_ASSERT(first != used_.end() && first->first <= offset, "what is withdrawn was allocated");
    std::uint64_t end = 0;
    for (auto block = used_.find(first->first); block != used_.end() && block->first < offset + bytes.size(); ++block) {
      no_longer_shared(block->second);
      end = block->first + block->second.size;
    }
    auto const from = std::max(offset / page_bytes * page_bytes, first->first);
    place = {from, std::min(rounded_up(offset + bytes.size(), page_bytes), end) - from};
    // Before the withdrawal, which may fail: the range must not be reused while other processes may write there.
    exposed_.emplace(place.offset, place.size);
  }
  // A registered block is used at its alias only, so the alias gets the private copy.
  auto const done = is_alias ? put_private_copy(bytes) : region_->withdraw(offset, bytes.size());
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
  std::vector<FreeRanges::Range> gaps;  // between the blocks in use
  {
    std::lock_guard const lock(mutex_);
    auto const [first, last] = exposed_.equal_range(place.offset);
    auto const entry = std::find_if(first, last, [&](auto const& range) { return range.second == place.size; });
    CHORUS_ASSERT(entry != last, "what is readmitted was withdrawn");
    exposed_.erase(entry);
    for (auto const& part : parts_of(place.offset, place.size)) {
      if (part.is_exposed) continue;
      auto at = part.offset;
      auto const end = part.offset + part.size;
      for (auto block = first_of(at); block != used_.end() && block->first < end; ++block) {
        if (block->first > at) gaps.push_back({at, block->first - at});
        at = std::min(block->first + block->second.size, end);
      }
      if (at != end) gaps.push_back({at, end - at});
    }
  }
  recycle(gaps);  // drops what other processes wrote there
}

std::uint64_t Arena::release_unused(TimePoint since) {
  std::uint64_t released = 0;
  for (bool is_done = false; !is_done;) {
    std::vector<FreeRanges::Range> going;
    {
      std::lock_guard const lock(mutex_);
      auto const unit = units_.take_empty_since(since);
      is_done = !unit;
      if (unit) going = free_.take_all({*unit, region_unit_bytes});
      if (unit) released += region_unit_bytes;
    }
    recycle(going);
  }
  return released;
}

std::uint64_t Arena::backed_bytes() const {
  std::lock_guard const lock(mutex_);
  return units_.backed_bytes() + coming_bytes_;
}

std::uint64_t Arena::used_bytes() const {
  std::lock_guard const lock(mutex_);
  return used_bytes_;
}

}  // namespace chorus::memory
