// The exact input and expected output of one rank in a collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/bench/ranks/buffer.hpp"
#include "worker/bench/ranks/orders.hpp"

namespace chorus::bench {

// If the operation sums, inputs are 0 or 1, whose sum is exact in every dtype and any order. Data that only moves
// differs in every element and on every rank. Two sets in turn, so that a result left over from the iteration before is
// not taken for a right one.
class Vectors {
 public:
  // Sums are exact up to 256 ranks. The buffers of calls are in `place`. Throws as Buffer does.
  Vectors(Task const& task, plan::Rank rank, std::uint32_t ranks, Place place = {});

  // Empty if the operation gives the rank none; sizes do not depend on the iteration.
  [[nodiscard]] std::span<std::byte const> input(std::uint64_t iteration) const {
    return inputs_[iteration % 2].bytes();
  }
  [[nodiscard]] std::span<std::byte> output() { return output_.bytes(); }
  [[nodiscard]] bool is_right(std::uint64_t iteration) const;

 private:
  Buffer inputs_[2], expected_[2], output_;
  float error_ = 0;  // of each number that may be: compressed sums are not exact
};

}  // namespace chorus::bench
