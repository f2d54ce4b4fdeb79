// A first-in-first-out list of objects that are each in it at most once. Allocates only when more objects than ever
// before are in it at the same time.
#pragma once

#include <algorithm>
#include <vector>

namespace chorus::engine {

// T has a public `bool is_queued`, initially false, for this queue alone. Objects are removed before they die.
template <class T>
class OnceQueue {
 public:
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }

  void push(T& object) {
    if (object.is_queued) return;
    object.is_queued = true;
    if (size_ == ring_.size()) grow();
    ring_[(first_ + size_++) % ring_.size()] = &object;
  }

  // Not empty.
  T& pop() {
    auto& object = *ring_[first_];
    first_ = (first_ + 1) % ring_.size();
    --size_;
    object.is_queued = false;
    return object;
  }

  void remove(T& object) {
    if (!object.is_queued) return;
    for (auto left = size_; left != 0; --left) {
      auto& next = pop();
      if (&next != &object) push(next);
    }
  }

 private:
  void grow() {
    std::rotate(ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(first_), ring_.end());
    first_ = 0;
    ring_.resize(ring_.empty() ? 8 : 2 * ring_.size());
  }

  std::vector<T*> ring_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace chorus::engine
