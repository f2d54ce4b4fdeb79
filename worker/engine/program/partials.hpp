// Memory for the f32 partial sums of a run, and the limits on how far a partial sum grows ahead of the instruction that
// ends it.
//
// Whole partial sums would take twice the memory of the vector. Each partial sum has a ring instead. The instruction
// that begins a partial sum waits until the instruction that ends it has used the part of the ring that it overwrites
// (FlowLimit). verify::check_lock_step proves for every plan that these waits never form a deadlock, whatever the size
// of the rings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/plan/program.hpp"

namespace chorus::engine {

// Instruction `ahead` is never more than `bytes` further than instruction `behind`.
struct FlowLimit {
  std::uint32_t ahead = 0, behind = 0;  // instructions
  std::uint64_t bytes = 0;              // of the vector
};

struct PartialsLimit {
  // Upper limit of the memory of all partial sums of a run, in bytes of f32. shortest_bytes comes first.
  std::uint64_t memory_bytes = std::numeric_limits<std::uint64_t>::max();
  // Lower limit of the size of a ring, in bytes of the vector.
  std::uint64_t shortest_bytes = 0;
};

// The rings of one program, for one size. Immutable.
class Partials {
 public:
  // For dtypes that are not summed in f32.
  Partials() = default;
  // The program passes verify::check. total_bytes[i]: bytes that instruction i moves, in elements of `dtype`.
  Partials(plan::Program const& program, std::span<std::uint64_t const> total_bytes, Dtype dtype, PartialsLimit limit);

  [[nodiscard]] std::uint64_t memory_bytes() const { return memory_bytes_; }
  // Limits for the partial sums that are longer than their rings, in the order of `ahead`.
  [[nodiscard]] std::vector<FlowLimit> const& flow_limits() const { return flow_limits_; }

  // Returns where the partial sum of instruction i lies, from byte `at` of its range on: the offset of its f32 values
  // in the memory, and how many bytes of the vector have contiguous values from there. An instruction without partial
  // sum has no limit: offset 0 and all bytes.
  struct Place {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] Place place(std::uint32_t i, std::uint64_t at) const {
    auto const ring = ring_of_.empty() ? no_ring : ring_of_[i];
    if (ring == no_ring) return {0, ~std::uint64_t{0}};
    auto const& [offset, bytes] = rings_[ring];
    auto const in_ring = at % bytes;
    return {offset + in_ring / element_bytes_ * wide_bytes_, bytes - in_ring};
  }

 private:
  static constexpr std::uint32_t no_ring = ~std::uint32_t{0};
  struct Ring {
    std::uint64_t offset = 0;  // in the memory
    std::uint64_t bytes = 0;   // of the vector
  };

  std::size_t element_bytes_ = 1;
  std::size_t wide_bytes_ = sizeof(float);  // of an element in f32
  std::uint64_t memory_bytes_ = 0;
  std::vector<Ring> rings_;
  std::vector<std::uint32_t> ring_of_;  // by instruction; empty if the program has no partial sums
  std::vector<FlowLimit> flow_limits_;
};

}  // namespace chorus::engine
