// From chunks to elements, at run time and in 64 bits: the only place that knows the element count.
//
// Chunk c of C over n elements holds n / C elements, and the first n % C chunks hold one more. So counts 0, 1, p-1,
// primes and more than 2^31 need no special case anywhere else.
#pragma once

#include <cstdint>

#include "collectives/plan/instruction.hpp"

namespace chorus::plan {

struct ElementRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  [[nodiscard]] std::uint64_t size() const { return end - begin; }
  friend bool operator==(ElementRange const&, ElementRange const&) = default;
};

class Layout {
 public:
  // chunks >= 1.
  Layout(std::uint64_t elements, std::uint32_t chunks);

  [[nodiscard]] std::uint64_t elements() const { return elements_; }
  [[nodiscard]] std::uint32_t chunks() const { return chunks_; }

  // first < chunks(); first + count <= chunks(). Neighbouring chunks are neighbouring elements.
  [[nodiscard]] ElementRange range(std::uint32_t first, std::uint32_t count = 1) const;

 private:
  [[nodiscard]] std::uint64_t begin_of(std::uint32_t chunk) const;

  std::uint64_t elements_;
  std::uint64_t quotient_;
  std::uint64_t remainder_;
  std::uint32_t chunks_;
};

}  // namespace chorus::plan
