// select(): the algorithm for a group and size, with the reason.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "collectives/model/choice/candidates.hpp"
#include "collectives/model/cost.hpp"

namespace chorus::model {

// simulate(), which follows every message of every rank, prices plans of groups up to this size. fold() prices larger
// groups, with a sample of the ranks if there are many rounds: under 50 ms for a group of 1,000 and all candidates. The
// reason tells it.
inline constexpr std::uint32_t max_simulated_ranks = 64;

// Prices one plan, without what happens before and after its run. The algorithm accepts the spec. `codes`: see
// simulate().
[[nodiscard]] Cost price(plan::Algorithm const& algorithm, plan::Spec const& spec, Network const& network,
                         std::uint64_t elements, std::size_t element_bytes,
                         std::optional<WireFormat> codes = std::nullopt);

struct Candidate {
  plan::Spec spec;
  Cost cost;
};

struct Choice {
  plan::Spec spec;  // algorithm, root and arity filled in
  Cost cost;
  std::string reason;                 // a sentence with numbers that names the runner-up; see below
  std::vector<Candidate> considered;  // cheapest first
  double model_seconds = 0;           // of the chosen plan, not corrected by runs (learned_costs.hpp)
};

// For ranks of one host with a core each: the model cannot tell plans within this fraction of the cheapest apart, so
// the one with the fewest rounds is taken. In every round ranks wait for each other, which the model counts as a
// latency only. Measurements: docs/explanation/performance.md.
inline constexpr double too_close_to_tell = 0.03;

// For ranks of one host that take turns on its cores, and an all_reduce whose vectors together have at least
// crowded_bytes: a plan in which all ranks are about equally busy is taken if its cost is within this fraction of the
// cheapest. The plan is halving_doubling up to halving_doubling_ranks_max ranks, and double_tree for more. The model
// has the cores as one pool, in which any rank may do the work; but all ranks wait for the busiest one, longer if its
// core has to fetch more from others. Measurements: docs/explanation/performance.md.
inline constexpr double too_crowded_to_tell = 0.15;
inline constexpr std::uint64_t crowded_bytes = 1u << 20;
inline constexpr std::uint32_t halving_doubling_ranks_max = 4;

// Prices every candidate of every fitting algorithm (candidates.hpp) and chooses the cheapest, the first in the
// catalogue among equals, with the exceptions above. An algorithm that the wish names is chosen at any cost; the others
// are priced for the reason. `localities` are in rank order.
//
// Reasons: "ring: predicted 1.90 ms, next best tree arity 2 root 0: 3.10 ms";
// "mesh: predicted 290 us in 1 round; double_tree: 288 us in 2 rounds is too close to tell";
// "double_tree root 0: predicted 2.55 ms with 2097152 bytes from the busiest rank; tree arity 2 root 0: 2.42 ms with
// 3145728 bytes from the busiest rank is too close to tell";
// "tree arity 2 root 0 was asked for: predicted 3.10 ms; auto would have chosen ring: 1.90 ms".
//
// Errors: PlanErrc, with possible wishes, for no ranks, a root out of range, an unknown algorithm, an algorithm that
// does not have the operation or cannot fulfil the wish, and a shape that does not fit.
[[nodiscard]] Result<Choice> select(Wish const& wish, std::span<Locality const> localities, std::uint64_t elements,
                                    std::size_t element_bytes, Constants const& constants);
// Likewise on an existing network.
[[nodiscard]] Result<Choice> select(Wish const& wish, Network const& network, std::uint64_t elements,
                                    std::size_t element_bytes);

}  // namespace chorus::model
