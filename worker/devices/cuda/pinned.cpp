#include "worker/devices/cuda/pinned.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "collectives/core/assert.hpp"

namespace chorus::devices {
namespace {

std::uint32_t bits(unsigned first, unsigned count) {
  return static_cast<std::uint32_t>(((std::uint64_t{1} << count) - 1) << first);
}

}  // namespace

PinnedSlot::PinnedSlot(PinnedSlot&& other) noexcept
    : pool_(other.pool_), memory_(std::exchange(other.memory_, {})), use_(other.use_) {}

PinnedSlot::~PinnedSlot() {
  if (!memory_.empty()) pool_->give_back(memory_, use_);
}

PinnedPool::~PinnedPool() {
  for (auto const& row : rows_) {
    CHORUS_ASSERT(row.taken == 0, "slots are given back before their pool goes");
    gpu_.free_pinned(row.data);
  }
}

PinnedPool::Place PinnedPool::find_free(unsigned slots) {
  Place best;
  int fewest = 0;
  for (auto& row : rows_) {
    auto const free = static_cast<int>(row.slots) - std::popcount(row.taken);
    if (free < static_cast<int>(slots) || (best.row != nullptr && free >= fewest)) continue;
    for (unsigned first = 0; first + slots <= row.slots; ++first) {
      if ((row.taken & bits(first, slots)) != 0) continue;
      best = {&row, first};
      fewest = free;
      break;
    }
  }
  return best;
}

std::string PinnedPool::described(std::uint64_t slots) const {
  return std::to_string(slots) + " slots of 1 MiB of pinned memory for cuda:" + std::to_string(gpu_.info().index);
}

Error PinnedPool::none_is_free(unsigned slots) const {
  auto const all = described(slots_max_);
  return {GpuErrc::out_of_memory, slots == 1 ? "all " + all + " are in use"
                                             : "of " + all + " no " + std::to_string(slots) + " in a row are free"};
}

Result<PinnedSlot> PinnedPool::take(PinnedUse use, unsigned slots) {
  CHORUS_ASSERT(slots >= 1 && slots <= 32, "as many as a row may have");
  std::scoped_lock lock(mutex_);
  bool const is_transfer = use == PinnedUse::transfer;
  if (is_transfer && transfers_ + slots > transfers_max() && transfers_max() < slots_max_)
    return Error(GpuErrc::out_of_memory, "all " + described(transfers_max()) + " that transfers may have are in use");
  auto place = find_free(slots);
  if (place.row == nullptr) {
    if (slots_ + slots > slots_max_) return none_is_free(slots);
    auto const made = gpu_.allocate_pinned(slots * slot_bytes);
    if (!made) return made.error();
    slots_ += slots;
    place.row = &rows_.emplace_back(*made, slots, 0);
  }
  place.row->taken |= bits(place.first, slots);
  if (is_transfer) transfers_ += slots;
  return PinnedSlot(*this, {place.row->data + place.first * slot_bytes, slots * slot_bytes}, use);
}

void PinnedPool::give_back(std::span<std::byte> memory, PinnedUse use) {
  std::scoped_lock lock(mutex_);
  auto const slots = static_cast<unsigned>(memory.size() / slot_bytes);
  if (use == PinnedUse::transfer) transfers_ -= slots;
  auto const row = std::ranges::find_if(
      rows_, [&](Row const& r) { return memory.data() >= r.data && memory.data() < r.data + r.slots * slot_bytes; });
  auto const first = static_cast<unsigned>(static_cast<std::uint64_t>(memory.data() - row->data) / slot_bytes);
  row->taken &= ~bits(first, slots);
}

std::uint64_t PinnedPool::pinned_bytes() const {
  std::scoped_lock lock(mutex_);
  return slots_ * slot_bytes;
}

}  // namespace chorus::devices
