// What is to be planned. A value: compared, hashed, printed, and the key of the plan cache.
//
// The element count and the dtype are deliberately absent: one plan serves every size (see layout.hpp).
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

// Raised whenever a generator or a pass changes what it emits for the same spec: part of every plan hash, so that
// workers of two releases refuse each other instead of exchanging the wrong chunks.
inline constexpr std::uint32_t generator_version = 5;

struct Spec {
  Op op = Op::all_reduce;
  std::string algorithm;    // "ring", "tree", "centralized"
  std::uint32_t ranks = 1;  // p
  Rank root = 0;            // of rooted operations; where rooted algorithms reduce
  std::uint32_t arity = 2;  // children per node, base of a bcube
  bool in_place = false;    // input and output are one buffer

  // How the ranks stand to each other, where an algorithm wants to know (Algorithm::shape says how it reads this):
  // extents of a torus, sizes of groups, parents in trees. Empty: the algorithm's own choice for p ranks.
  std::vector<std::uint32_t> shape;

  // The rank at each position (positions.hpp). Empty: rank i is at position i.
  std::vector<Rank> by_position;

  friend auto operator<=>(Spec const&, Spec const&) = default;
};

// ranks in 1..max_ranks, root < ranks, arity >= 1, at most max_shape numbers of shape; by_position empty, or every rank
// once in another order than that of the ranks. Algorithms add their own conditions (Algorithm::check).
[[nodiscard]] Status check(Spec const& spec);

// "all_reduce tree ranks=8 root=0 arity=2 out_of_place", " shape=2,4" and " by_position=1,0" behind it if there are
// any: stable, part of the text form and of the hash.
[[nodiscard]] std::string to_string(Spec const& spec);

// 64 bits over to_string and generator_version; the same on every rank and every machine.
[[nodiscard]] std::uint64_t hash(Spec const& spec);

}  // namespace chorus::plan
