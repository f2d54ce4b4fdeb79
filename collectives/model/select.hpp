// Which algorithm for this group and size, and why.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/model/cost.hpp"

namespace chorus::model {

// Groups of up to this many ranks are costed by following every instruction of every rank (cost()); larger ones by
// closed formulas (estimate()), because all ranks' programs together grow with p squared. The reason says which.
inline constexpr std::uint32_t max_followed_ranks = 64;

struct Candidate {
  plan::Spec spec;
  Cost cost;
};

struct Choice {
  plan::Spec spec;  // algorithm, root and arity filled in
  Cost cost;
  std::string reason;                 // a sentence with numbers that names the runner-up; see below
  std::vector<Candidate> considered;  // cheapest first
};

// What the caller fixed; everything else is chosen.
struct Wish {
  Op op = Op::all_reduce;
  std::string algorithm = "auto";
  std::optional<plan::Rank> root;
  std::optional<std::uint32_t> arity;
  std::optional<plan::Shape> shape;
  bool in_place = false;
  bool uneven = false;        // blocks of different sizes
  bool reproducible = false;  // only algorithms that reduce in worker order: the same bits from all of them
};

// localities in rank order. Costs every fitting algorithm (trees of arity 2, 4 and 8, for rooted algorithms the root
// with the least total distance, unless the wish fixes them), takes the cheapest, of equals the first in the catalogue.
// An algorithm asked for by name is taken at any cost, and the others are costed to tell. A root or arity that an
// algorithm does not use is 0 or 2 in its spec, so that equal plans have equal hashes.
//
// Reasons: "ring: predicted 1.90 ms, next best tree arity 2 root 0: 3.10 ms";
// "tree arity 2 root 0 was asked for: predicted 3.10 ms; auto would have chosen ring: 1.90 ms".
//
// Errors: PlanErrc, e.g. for no ranks, a root out of range, an unknown algorithm, an operation that none can do.
[[nodiscard]] Result<Choice> select(Wish const& wish, std::span<Locality const> localities, std::uint64_t elements,
                                    std::size_t element_bytes, Constants const& constants);

}  // namespace chorus::model
