// What one rank brings to a collective and what it must get, exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/bench/buffer.hpp"
#include "worker/bench/orders.hpp"

namespace chorus::bench {

// Inputs whose sum is exact in every dtype and any order, where there is a sum: 0 or 1. What only moves has other bits
// in every element and on every rank. Two sets in turn, so that a result which is left over from the iteration before
// is not taken for a right one.
class Vectors {
 public:
  // Sums are exact up to 256 ranks. The place holds what is called with. Throws as Buffer does.
  Vectors(Task const& task, plan::Rank rank, std::uint32_t ranks, Place place = {});

  // Empty where the operation gives the rank none; none of them of a size that depends on the iteration.
  [[nodiscard]] std::span<std::byte const> input(std::uint64_t iteration) const {
    return inputs_[iteration % 2].bytes();
  }
  [[nodiscard]] std::span<std::byte> output() { return output_.bytes(); }
  [[nodiscard]] bool is_right(std::uint64_t iteration) const;

 private:
  Buffer inputs_[2], expected_[2], output_;
};

}  // namespace chorus::bench
