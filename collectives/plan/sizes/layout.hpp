// Layout: the mapping from chunks to elements, at run time and in 64 bits. Only layouts know the element count.
//
// Each of C chunks of n elements has n / C elements, and the first n % C chunks have one more. So counts 0, 1, p-1,
// primes and more than 2^31 need no special case elsewhere. A vector of blocks is cut into blocks first, evenly or by
// counts, and each block into chunks, so that a rank's result does not depend on the algorithm's chunks.
//
// Blocks lie in the vector by rank, and are numbered by position (positions.hpp). If the two differ, neighbouring
// chunks of two blocks need not be neighbours in the vector: piece() returns chunks that are.
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

// Contiguous chunks of the vector.
struct Piece {
  std::uint64_t begin = 0;  // first element in the vector
  std::uint64_t elements = 0;
  std::uint32_t chunks = 0;
  friend bool operator==(Piece const&, Piece const&) = default;
};

// A value; copies share the tables of counts and places. Safe to read from any thread.
class Layout {
 public:
  // Without blocks. chunks >= 1.
  Layout(std::uint64_t elements, std::uint32_t chunks) : Layout(elements, chunks, chunks) {}
  // With even blocks, whose sizes differ by one at most. chunks is a multiple of blocks >= 1.
  Layout(std::uint64_t elements, std::uint32_t blocks, std::uint32_t chunks);
  // Block b has counts[b] elements; chunks is a multiple of the number of blocks >= 1. The sum fits 64 bits.
  Layout(std::span<std::uint64_t const> counts, std::uint32_t chunks);
  // The same vector with blocks numbered by position: position i has block by_position[i]; every block once.
  Layout(std::span<std::uint64_t const> counts, std::span<std::uint32_t const> by_position, std::uint32_t chunks);

  [[nodiscard]] std::uint64_t elements() const { return elements_; }
  [[nodiscard]] std::uint32_t chunks() const { return chunks_; }

  // Returns the elements of the chunks as if all chunks lay in the vector in their order. first < chunks();
  // first + count <= chunks().
  [[nodiscard]] ElementRange range(std::uint32_t first, std::uint32_t count = 1) const;
  // Returns the number of elements of all chunks before this one; chunk <= chunks().
  [[nodiscard]] std::uint64_t begin_of(std::uint32_t chunk) const;

  // Returns the first of these chunks that are contiguous in the vector, at least one. count >= 1.
  [[nodiscard]] Piece piece(std::uint32_t first, std::uint32_t count) const;

  // Returns true if all chunks have the same size.
  [[nodiscard]] bool is_equal() const;

 private:
  [[nodiscard]] std::uint64_t block_begin(std::uint32_t block) const;

  std::uint64_t elements_;
  std::uint64_t quotient_;
  std::uint64_t remainder_;
  std::uint32_t chunks_;
  std::uint32_t per_block_;                                         // number of chunks
  std::shared_ptr<std::vector<std::uint64_t> const> block_begins_;  // one more than blocks; null if even

  // Place of one block; the table is by position.
  struct Lying {
    std::uint64_t begin = 0;       // in the vector
    std::uint32_t chunks_end = 0;  // one past the last chunk that follows without a gap
  };
  std::shared_ptr<std::vector<Lying> const> lying_;  // null where all chunks lie in their order
};

}  // namespace chorus::plan
