// What a chunk holds, symbolically: whose chunk went into it, and how often.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/plan/spec.hpp"

namespace chorus::verify {

// An arena of values. A value is a multiset of (origin rank, origin chunk), written as runs: "chunk 3 of the
// ranks 2..5, once each". Runs are sorted, disjoint and as long as can be, so that equal multisets are equal runs, and
// a partial sum of a ring or a tree is a few runs however many ranks are in it. A value is also finished or not:
// whether an instruction marked final has made it (where avg divides). Values are immutable; a copy is the same id.
class Contributions {
 public:
  using Id = std::uint32_t;

  // What nobody has written yet. Not to be passed to any function but defined().
  static constexpr Id undefined = 0;

  // The input of a rank; finished as it stands where nothing is to be reduced.
  [[nodiscard]] Id input(plan::Rank rank, std::uint32_t chunk, bool finished = false);
  [[nodiscard]] Id sum(Id a, Id b);
  [[nodiscard]] Id finish(Id value);

  [[nodiscard]] bool finished(Id value) const { return values_[value].finished; }
  // Every rank of 0..p-1 once, the same chunk of each.
  [[nodiscard]] bool complete(Id value, std::uint32_t ranks) const;
  [[nodiscard]] bool complete(Id value, std::uint32_t ranks, std::uint32_t chunk) const;
  // This chunk of this rank and nothing else.
  [[nodiscard]] bool is_input(Id value, plan::Rank rank, std::uint32_t chunk) const;

  // One rank's chunk, once.
  [[nodiscard]] bool is_alone(Id value) const;

  // "chunk 3 of ranks 2..5, chunk 3 of rank 7 x2"
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
