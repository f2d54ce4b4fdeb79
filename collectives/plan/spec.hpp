// Spec: the input of planning. A value that is compared, hashed and printed, and the key of the plan cache.
//
// It has no element count and no dtype: one plan serves every size (see sizes/layout.hpp).
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "collectives/core/op.hpp"
#include "collectives/core/result.hpp"

namespace chorus::plan {

using Rank = std::uint32_t;

inline constexpr std::uint32_t max_ranks = 65536;
inline constexpr std::size_t max_shape = 65536;

// Raised whenever a generator or a pass emits other instructions for the same spec. It is part of every plan hash, so
// that workers of two releases refuse each other instead of exchanging wrong chunks.
inline constexpr std::uint32_t generator_version = 6;

struct Spec {
  Op op = Op::all_reduce;
  std::string algorithm;    // "ring", "tree", "centralized"
  std::uint32_t ranks = 1;  // p
  Rank root = 0;            // of rooted operations and of rooted algorithms
  std::uint32_t arity = 2;  // children per node, base of a bcube
  bool in_place = false;    // input and output are one buffer

  // Arrangement of the ranks for algorithms that use one: extents of a torus, sizes of groups, parents in trees. The
  // algorithm's comment explains it (Algorithm::shapes). Empty: the algorithm's own choice for p ranks.
  std::vector<std::uint32_t> shape;

  // The rank at each position (positions.hpp). Empty: rank i is at position i.
  std::vector<Rank> by_position;

  friend auto operator<=>(Spec const&, Spec const&) = default;
};

// Checks the conditions of every algorithm: ranks in 1..max_ranks, root < ranks, arity >= 1, at most max_shape numbers
// of shape; by_position is empty, or has every rank once and not in rank order. Algorithm::check adds the algorithm's
// own conditions.
[[nodiscard]] Status check(Spec const& spec);

// Returns "all_reduce tree ranks=8 root=0 arity=2 out_of_place", followed by " shape=2,4" and " by_position=1,0" if
// they are not empty. Stable: part of the text form and of the hash.
[[nodiscard]] std::string to_string(Spec const& spec);

// Returns 64 bits of to_string and generator_version, the same on every rank and every machine.
[[nodiscard]] std::uint64_t hash(Spec const& spec);

}  // namespace chorus::plan
