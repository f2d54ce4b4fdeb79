// The chunks of the vector that a rank's buffers hold before and after an operation. This defines the operations.
//
// Chunks have the same numbers on all ranks. In the operations that have blocks, C is a multiple of p and the C / p
// chunks from i C / p on are the block of the rank at position i (positions.hpp). all_to_all is an exception: block i
// of a rank's input goes to the rank at position i, and block i of its output comes from that rank.
#pragma once

#include <cstdint>

#include "collectives/plan/spec.hpp"

namespace chorus::plan {

struct ChunkRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  [[nodiscard]] bool empty() const { return count == 0; }
  [[nodiscard]] bool contains(std::uint32_t chunk) const { return chunk - first < count; }
  friend bool operator==(ChunkRange const&, ChunkRange const&) = default;
};

struct Holding {
  ChunkRange input;   // empty: the rank has no input
  ChunkRange output;  // empty: the rank gets no result
  friend bool operator==(Holding const&, Holding const&) = default;
};

// Returns the chunks that the operation defines. rank < spec.ranks; chunks as above.
[[nodiscard]] Holding holding(Spec const& spec, Rank rank, std::uint32_t chunks);

// Returns the memory that a program addresses: holding(), but if a rank in place has two buffers, both are the larger.
[[nodiscard]] Holding memory(Spec const& spec, Rank rank, std::uint32_t chunks);

}  // namespace chorus::plan
