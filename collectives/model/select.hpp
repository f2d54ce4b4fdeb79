// Which algorithm for this group and size, and why.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "collectives/model/candidates.hpp"
#include "collectives/model/cost.hpp"

namespace chorus::model {

// Groups of up to this many ranks are costed by following every message of every rank (simulate()); larger ones by
// summing up what rounds say, of a sample of the ranks where there are many rounds (fold()): under 50 ms for a group of
// 1,000, all algorithms and their variants together. The reason says which.
inline constexpr std::uint32_t max_simulated_ranks = 64;

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

// Ranks of one host that have a core each: of plans that the model holds for equal within this part of the cheapest,
// the one with fewest rounds is taken. In every round ranks wait for each other, which the model has as a latency
// alone; an all_reduce of two ranks that exchange halves twice takes 1.04 to 1.15 times one that exchanges all of it
// once, also between bare sockets (docs/performance.md).
inline constexpr double too_close_to_tell = 0.03;

// Ranks of one host that take turns on its cores, and an all_reduce whose vectors are together this long: if it is
// within this part of the cheapest, a plan is taken in which all ranks are about as busy, halving_doubling for so many
// ranks and double_tree for more. The model has the cores as one pool, in which it does not matter who does the work;
// but all wait for the busiest rank, the longer the more its core has to fetch from others. Beside a tree they take
// 0.8 to 1.3 times as long where all cores have one cache, and 0.6 to 1 where they have several, which the model
// does not know; of other operations now this, now that plan is faster (docs/performance.md).
inline constexpr double too_crowded_to_tell = 0.15;
inline constexpr std::uint64_t crowded_bytes = 1u << 20;
inline constexpr std::uint32_t halving_doubling_ranks_max = 4;

// localities in rank order. Costs every candidate of every fitting algorithm (candidates.hpp), takes the cheapest, of
// equals the first in the catalogue; see above. An algorithm asked for by name is taken at any cost, and the others are
// costed to tell.
//
// Reasons: "ring: predicted 1.90 ms, next best tree arity 2 root 0: 3.10 ms";
// "mesh: predicted 290 us in 1 round; double_tree: 288 us in 2 rounds is too close to tell";
// "double_tree root 0: predicted 2.55 ms with 2097152 bytes from the busiest rank; tree arity 2 root 0: 2.42 ms with
// 3145728 bytes from the busiest rank is too close to tell";
// "tree arity 2 root 0 was asked for: predicted 3.10 ms; auto would have chosen ring: 1.90 ms".
//
// Errors: PlanErrc, saying what would be possible: for no ranks, a root out of range, an unknown algorithm, one that
// cannot do the operation or as the wish demands, a shape that does not fit.
[[nodiscard]] Result<Choice> select(Wish const& wish, std::span<Locality const> localities, std::uint64_t elements,
                                    std::size_t element_bytes, Constants const& constants);
// The same on a network that is there already.
[[nodiscard]] Result<Choice> select(Wish const& wish, Network const& network, std::uint64_t elements,
                                    std::size_t element_bytes);

}  // namespace chorus::model
