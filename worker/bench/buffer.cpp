#include "worker/bench/buffer.hpp"

#include <algorithm>
#include <utility>

namespace chorus::bench {

Buffer::Buffer(std::span<std::byte const> contents, memory::Arena* arena) {
  if (arena != nullptr && !contents.empty())
    if (auto block = arena->allocate(contents.size()); block.has_value()) {
      arena_ = arena;
      shared_ = *block;
      std::copy(contents.begin(), contents.end(), shared_.begin());
      return;
    }
  own_.assign(contents.begin(), contents.end());
}

Buffer::~Buffer() {
  if (!shared_.empty()) arena_->free(shared_.data());
}

Buffer::Buffer(Buffer&& other) noexcept
    : arena_(other.arena_), shared_(std::exchange(other.shared_, {})), own_(std::move(other.own_)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(arena_, other.arena_);
  std::swap(shared_, other.shared_);
  std::swap(own_, other.own_);
  return *this;
}

}  // namespace chorus::bench
