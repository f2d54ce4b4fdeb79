// Contributions: the symbolic value of a chunk. It tells which ranks' chunks were added to it, and how often.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/plan/spec.hpp"

namespace chorus::verify {

// An arena of values. A value is a multiset of (origin rank, origin chunk), stored as runs: "chunk 3 of the ranks 2..5,
// once each". Runs are sorted, disjoint and maximal, so that equal multisets have equal runs, and a partial sum of a
// ring or a tree has few runs for any number of ranks. A value is finished if a final instruction, in which avg
// divides, has made it. Values are immutable; a copy has the same id.
class Contributions {
 public:
  using Id = std::uint32_t;

  // Value of a chunk that no instruction has written. Not an argument of any function.
  static constexpr Id undefined = 0;

  // Returns the value of a chunk of a rank's input. It is finished from the start if the operation does not reduce.
  [[nodiscard]] Id input(plan::Rank rank, std::uint32_t chunk, bool finished = false);
  [[nodiscard]] Id sum(Id a, Id b);
  [[nodiscard]] Id finish(Id value);

  [[nodiscard]] bool finished(Id value) const { return values_[value].finished; }
  // Returns true if the value has the same chunk of every rank of 0..p-1, once each.
  [[nodiscard]] bool complete(Id value, std::uint32_t ranks) const;
  [[nodiscard]] bool complete(Id value, std::uint32_t ranks, std::uint32_t chunk) const;
  // Returns true if the value is this chunk of this rank.
  [[nodiscard]] bool is_input(Id value, plan::Rank rank, std::uint32_t chunk) const;

  // Returns true if the value is one chunk of one rank, once.
  [[nodiscard]] bool is_alone(Id value) const;

  // Returns text like "chunk 3 of ranks 2..5, chunk 3 of rank 7 x2".
  [[nodiscard]] std::string describe(Id value) const;

 private:
  struct Run {
    std::uint32_t chunk, begin, end, count;  // ranks [begin, end)
  };
  struct Value {
    std::size_t begin = 0;  // in runs_
    std::size_t end = 0;
    bool finished = false;
  };

  void append(std::size_t begin, Run run);
  Id keep(std::size_t begin, bool finished);

  std::vector<Run> runs_;
  std::vector<Value> values_{Value{}};
};

}  // namespace chorus::verify
