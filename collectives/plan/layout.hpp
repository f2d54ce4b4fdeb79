// From chunks to elements, at run time and in 64 bits: the only place that knows the element count.
//
// Chunk c of C over n elements holds n / C elements, and the first n % C chunks hold one more. So counts 0, 1, p-1,
// primes and more than 2^31 need no special case anywhere else. A vector of blocks is cut into blocks first, evenly or
// as counts say, and each block into its chunks, so that what a rank gets does not depend on the algorithm's chunks.
//
// Blocks lie in the vector by rank, and are counted by position (positions.hpp). Where the two differ, neighbouring
// chunks of two blocks need not be neighbouring elements: piece() says which ones are.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectives/plan/instruction.hpp"

namespace chorus::plan {

struct ElementRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  [[nodiscard]] std::uint64_t size() const { return end - begin; }
  friend bool operator==(ElementRange const&, ElementRange const&) = default;
};

// Chunks that lie behind each other in the vector.
struct Piece {
  std::uint64_t begin = 0;  // where they lie
  std::uint64_t elements = 0;
  std::uint32_t chunks = 0;
  friend bool operator==(Piece const&, Piece const&) = default;
};

// A value; copies share the tables of counts and places.
class Layout {
 public:
  // chunks >= 1.
  Layout(std::uint64_t elements, std::uint32_t chunks) : Layout(elements, chunks, chunks) {}
  // chunks is a multiple of blocks >= 1; the blocks' sizes differ by one at most.
  Layout(std::uint64_t elements, std::uint32_t blocks, std::uint32_t chunks);
  // Block b has counts[b] elements; chunks is a multiple of their number >= 1. The sum fits 64 bits.
  Layout(std::span<std::uint64_t const> counts, std::uint32_t chunks);
  // The same vector, of which the i-th block to be cut into chunks is block by_position[i]; every block once.
  Layout(std::span<std::uint64_t const> counts, std::span<std::uint32_t const> by_position, std::uint32_t chunks);

  [[nodiscard]] std::uint64_t elements() const { return elements_; }
  [[nodiscard]] std::uint32_t chunks() const { return chunks_; }

  // Chunk after chunk, as if they lay behind each other in their order. first < chunks(); first + count <= chunks().
  [[nodiscard]] ElementRange range(std::uint32_t first, std::uint32_t count = 1) const;
  // Elements of all chunks before this one; chunk <= chunks().
  [[nodiscard]] std::uint64_t begin_of(std::uint32_t chunk) const;

  // Where they lie in the vector: the first ones of these chunks that lie behind each other, at least one. count >= 1.
  [[nodiscard]] Piece piece(std::uint32_t first, std::uint32_t count) const;

  // Whether all chunks have the same size.
  [[nodiscard]] bool is_equal() const;

 private:
  [[nodiscard]] std::uint64_t block_begin(std::uint32_t block) const;

  std::uint64_t elements_;
  std::uint64_t quotient_;
  std::uint64_t remainder_;
  std::uint32_t chunks_;
  std::uint32_t per_block_;                                         // chunks
  std::shared_ptr<std::vector<std::uint64_t> const> block_begins_;  // one more than blocks; null if even

  // Of a block, by position.
  struct Lying {
    std::uint64_t begin = 0;       // in the vector
    std::uint32_t chunks_end = 0;  // one past the last chunk that follows without a gap
  };
  std::shared_ptr<std::vector<Lying> const> lying_;  // null where all chunks lie in their order
};

}  // namespace chorus::plan
