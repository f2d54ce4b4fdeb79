// A queue of numbers of instructions in a ring whose capacity is set once: a push never allocates.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/core/assert.hpp"

namespace chorus::engine {

// Owned by a scoreboard or a channel; used by one thread.
class IndexQueue {
 public:
  IndexQueue() = default;
  explicit IndexQueue(std::size_t capacity) : ring_(capacity) {}

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::uint32_t front() const { return ring_[first_]; }

  void push(std::uint32_t index) {
    CHORUS_ASSERT(size_ < ring_.size(), "each index is queued at most once");
    auto const at = first_ + size_++;
    ring_[at < ring_.size() ? at : at - ring_.size()] = index;
  }
  void clear() { first_ = size_ = 0; }
  void pop() {
    first_ = first_ + 1 < ring_.size() ? first_ + 1 : 0;
    --size_;
  }

 private:
  std::vector<std::uint32_t> ring_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace chorus::engine
