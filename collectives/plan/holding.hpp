// Which chunks of the vector a rank's buffers hold: the meaning of the operations, before anything has moved and after.
//
// Chunks are numbered alike on all ranks. In the operations that have blocks, C is a multiple of p and the C / p chunks
// from i C / p on are the block of the rank at position i (positions.hpp). Only all_to_all counts differently: block i
// of a rank's input is meant for the rank at position i, block i of its output comes from there.
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
  ChunkRange input;   // empty: this rank brings nothing
  ChunkRange output;  // empty: it gets nothing
  friend bool operator==(Holding const&, Holding const&) = default;
};

// What the operation defines. rank < spec.ranks; chunks as above.
[[nodiscard]] Holding holding(Spec const& spec, Rank rank, std::uint32_t chunks);

// The memory that a program addresses: the same, but in place a rank that has both buffers has one, the larger of them.
[[nodiscard]] Holding memory(Spec const& spec, Rank rank, std::uint32_t chunks);

}  // namespace chorus::plan
