#include "worker/engine/groups/spare_memory.hpp"

namespace chorus::engine {

void SpareMemory::give_back() {
  if (!shared_.empty()) arena_->free(shared_.data());
  shared_ = {};
}

std::span<std::byte> SpareMemory::take(std::uint64_t bytes) {
  if (shared_.size() >= bytes) return shared_.first(bytes);
  if (own_.size() >= bytes) return std::span(own_).first(bytes);
  give_back();
  if (arena_ != nullptr)
    if (auto const block = arena_->allocate(bytes); block.has_value()) {
      shared_ = *block;
      return shared_.first(bytes);
    }
  own_.resize(bytes);
  return own_;
}

}  // namespace chorus::engine
