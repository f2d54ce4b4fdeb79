// Where the partial sums in f32 of a run lie, and how far one may grow ahead of who ends it.
//
// Whole they would take twice the vector. Each has a ring instead: who begins it waits until those who end it have used
// what lies there (FlowLimit), so that it takes no more than what is under way. That this holds nobody up for ever, in
// any ring, is a part of what is proved of every plan (verify::check_lock_step).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/plan/program.hpp"

namespace chorus::engine {

// `ahead` is never more than so many bytes further than `behind`.
struct FlowLimit {
  std::uint32_t ahead = 0, behind = 0;  // instructions
  std::uint64_t bytes = 0;              // of the vector
};

struct PartialsLimit {
  // In f32, of all sums of a run together,
  std::uint64_t memory_bytes = std::numeric_limits<std::uint64_t>::max();
  // as long as no ring is shorter than so many bytes of the vector.
  std::uint64_t shortest_bytes = 0;
};

// A value.
class Partials {
 public:
  // For dtypes that have none.
  Partials() = default;
  // Of a right program. total_bytes[i]: of instruction i, elements of `dtype`.
  Partials(plan::Program const& program, std::span<std::uint64_t const> total_bytes, Dtype dtype, PartialsLimit limit);

  [[nodiscard]] std::uint64_t memory_bytes() const { return memory_bytes_; }
  // Of sums that are longer than their rings; by `ahead`.
  [[nodiscard]] std::vector<FlowLimit> const& flow_limits() const { return flow_limits_; }

  // Byte `at` of what instruction i adds or leaves: where its f32 lies in the memory, and how many bytes of the vector
  // have theirs behind it. Of instructions that have no partial sum: nowhere, and all.
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
  std::vector<std::uint32_t> ring_of_;  // by instruction; empty where there are none
  std::vector<FlowLimit> flow_limits_;
};

}  // namespace chorus::engine
