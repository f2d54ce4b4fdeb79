#include "worker/devices/cuda/pinned.hpp"

#include <utility>

#include "collectives/core/assert.hpp"

namespace chorus::devices {

PinnedSlot::PinnedSlot(PinnedSlot&& other) noexcept
    : pool_(other.pool_), data_(std::exchange(other.data_, nullptr)), use_(other.use_) {}

PinnedSlot::~PinnedSlot() {
  if (data_ != nullptr) pool_->give_back(data_, use_);
}

std::span<std::byte> PinnedSlot::bytes() const { return {data_, PinnedPool::slot_bytes}; }

PinnedPool::~PinnedPool() {
  CHORUS_ASSERT(free_.size() == slots_, "slots are given back before their pool goes");
  for (auto* const slot : free_) gpu_.free_pinned(slot);
}

Result<PinnedSlot> PinnedPool::take(PinnedUse use) {
  std::scoped_lock lock(mutex_);
  bool const is_transfer = use == PinnedUse::transfer;
  if (is_transfer && transfers_ == transfers_max() && transfers_max() < slots_max_)
    return Error(GpuErrc::out_of_memory, "all " + std::to_string(transfers_max()) +
                                             " slots of 1 MiB of pinned memory for cuda:" +
                                             std::to_string(gpu_.info().index) + " that transfers may have are in use");
  if (!free_.empty()) {
    auto* const slot = free_.back();
    free_.pop_back();
    if (is_transfer) ++transfers_;
    return PinnedSlot(*this, slot, use);
  }
  if (slots_ == slots_max_)
    return Error(GpuErrc::out_of_memory,
                 "all " + std::to_string(slots_max_) +
                     " slots of 1 MiB of pinned memory for cuda:" + std::to_string(gpu_.info().index) + " are in use");
  auto const made = gpu_.allocate_pinned(slot_bytes);
  if (!made) return made.error();
  ++slots_;
  free_.reserve(slots_);
  if (is_transfer) ++transfers_;
  return PinnedSlot(*this, *made, use);
}

void PinnedPool::give_back(std::byte* data, PinnedUse use) {
  std::scoped_lock lock(mutex_);
  if (use == PinnedUse::transfer) --transfers_;
  free_.push_back(data);
}

std::uint64_t PinnedPool::pinned_bytes() const {
  std::scoped_lock lock(mutex_);
  return slots_ * slot_bytes;
}

}  // namespace chorus::devices
