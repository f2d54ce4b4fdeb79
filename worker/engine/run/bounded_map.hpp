// A map of fixed capacity with numbers as keys: a new number replaces the oldest one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "collectives/core/fetch_soon.hpp"

namespace chorus::engine {

// A small call looks up several numbers, so a look-up touches a few hot cache lines: keys and chains are stored apart
// from the values. Values are reused, and the oldest has left the caches by then: each insertion prefetches the value
// of the next one. Not thread-safe.
template <class Value, std::size_t capacity>
class BoundedMap {
  static_assert(capacity < 0xffff && (capacity & (capacity - 1)) == 0);

 public:
  BoundedMap() {
    heads_.fill(nothing);
    values_.reserve(capacity);
  }

  [[nodiscard]] Value const* find(std::uint64_t number) const {
    auto const at = index_of(number);
    return at == nothing ? nullptr : &values_[at];
  }

  // The value of this number. For a new number: what the number that it replaces has left. The reference is valid until
  // the number is replaced.
  Value& at(std::uint64_t number) {
    if (auto const known = index_of(number); known != nothing) return values_[known];
    Index index = 0;
    if (values_.size() < capacity) {
      index = static_cast<Index>(values_.size());
      values_.emplace_back();
    } else {
      index = oldest_;
      oldest_ = static_cast<Index>((oldest_ + 1) % capacity);
      fetch_soon(values_[oldest_]);
      unlink(index);
    }
    numbers_[index] = number;
    auto& head = heads_[slot(number)];
    next_[index] = std::exchange(head, index);
    return values_[index];
  }

 private:
  using Index = std::uint16_t;
  static constexpr Index nothing = 0xffff;

  // Numbers may be random, or count up by ones.
  static std::size_t slot(std::uint64_t number) {
    return static_cast<std::size_t>((number * 0x9e3779b97f4a7c15) >> 32) % (2 * capacity);
  }
  [[nodiscard]] Index index_of(std::uint64_t number) const {
    auto at = heads_[slot(number)];
    while (at != nothing && numbers_[at] != number) at = next_[at];
    return at;
  }
  void unlink(Index index) {
    auto* link = &heads_[slot(numbers_[index])];
    while (*link != index) link = &next_[*link];
    *link = next_[index];
  }

  std::array<std::uint64_t, capacity> numbers_{};
  std::array<Index, capacity> next_{};
  std::array<Index, 2 * capacity> heads_{};
  std::vector<Value> values_;
  Index oldest_ = 0;
};

}  // namespace chorus::engine
