// Which algorithm for this group and size, and why.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/model/cost.hpp"

namespace chorus::model {

struct Candidate {
  plan::Spec spec;
  Cost cost;
};

struct Choice {
  plan::Spec spec;                    // algorithm, root and arity filled in
  Cost cost;
  std::string reason;                 // "ring: predicted 1.9 ms, next best tree arity 2: 3.1 ms; asked for by name" ...
  std::vector<Candidate> considered;  // cheapest first
};

// What the caller fixed; everything else is chosen.
struct Wish {
  Op op = Op::all_reduce;
  std::string algorithm = "auto";
  std::optional<plan::Rank> root;
  std::optional<std::uint32_t> arity;
  bool in_place = false;
};

// localities in rank order. Costs every fitting algorithm (trees of arity 2, 4 and 8; for rooted algorithms the root with
// the least total distance), takes the cheapest. Errors: PlanErrc, e.g. for a root out of range.
[[nodiscard]] Result<Choice> select(Wish const& wish, std::span<Locality const> localities, std::uint64_t elements,
                                    std::size_t element_bytes, Constants const& constants);

}  // namespace chorus::model
