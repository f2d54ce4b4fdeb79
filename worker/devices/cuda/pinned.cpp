#include "worker/devices/cuda/pinned.hpp"

#include <utility>

#include "collectives/core/assert.hpp"

namespace chorus::devices {

PinnedSlot::PinnedSlot(PinnedSlot&& other) noexcept : pool_(other.pool_), data_(std::exchange(other.data_, nullptr)) {}

PinnedSlot::~PinnedSlot() {
  if (data_ != nullptr) pool_->give_back(data_);
}

std::span<std::byte> PinnedSlot::bytes() const { return {data_, PinnedPool::slot_bytes}; }

PinnedPool::~PinnedPool() {
  CHORUS_ASSERT(free_.size() == slots_, "slots are given back before their pool goes");
  for (auto* const slot : free_) gpu_.free_pinned(slot);
}

Result<PinnedSlot> PinnedPool::take() {
  std::scoped_lock lock(mutex_);
  if (!free_.empty()) {
    auto* const slot = free_.back();
    free_.pop_back();
    return PinnedSlot(*this, slot);
  }
  if (slots_ == slots_max_)
    return Error(GpuErrc::out_of_memory,
                 "all " + std::to_string(slots_max_) +
                     " slots of 1 MiB of pinned memory for cuda:" + std::to_string(gpu_.info().index) + " are in use");
  auto const made = gpu_.allocate_pinned(slot_bytes);
  if (!made) return made.error();
  ++slots_;
  free_.reserve(slots_);
  return PinnedSlot(*this, *made);
}

void PinnedPool::give_back(std::byte* data) {
  std::scoped_lock lock(mutex_);
  free_.push_back(data);
}

std::uint64_t PinnedPool::pinned_bytes() const {
  std::scoped_lock lock(mutex_);
  return slots_ * slot_bytes;
}

}  // namespace chorus::devices
