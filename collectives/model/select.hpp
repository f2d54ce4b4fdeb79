// Selects the algorithm for a group and size, with the reason.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "collectives/model/candidates.hpp"
#include "collectives/model/cost.hpp"

namespace chorus::model {

// Groups up to this size are costed by following every message of every rank (simulate()); larger ones by folding the
// rounds, of a sample of the ranks if there are many rounds (fold()): under 50 ms for a group of 1,000, all algorithms
// and their variants together. The reason says which.
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

// For ranks of one host with a core each: among plans within this fraction of the cheapest, which the model cannot tell
// apart, the one with the fewest rounds is taken. In every round ranks wait for each other, which the model counts as a
// latency only; an all_reduce of two ranks that exchange halves twice takes 1.04 to 1.15 times one that exchanges
// everything once, also between bare sockets (docs/explanation/performance.md).
inline constexpr double too_close_to_tell = 0.03;

// For ranks of one host that take turns on its cores, and an all_reduce whose vectors have this size together: a plan
// in which all ranks are about equally busy is taken if it is within this fraction of the cheapest, halving_doubling up
// to this many ranks and double_tree for more. The model treats the cores as one pool, in which it does not matter
// which rank does the work; but all wait for the busiest rank, longer if its core has to fetch more from others.
// Compared to a tree these plans take 0.8 to 1.3 times as long if all cores have one cache, and 0.6 to 1 if they have
// several, which the model does not know; for other operations either plan may be faster
// (docs/explanation/performance.md).
inline constexpr double too_crowded_to_tell = 0.15;
inline constexpr std::uint64_t crowded_bytes = 1u << 20;
inline constexpr std::uint32_t halving_doubling_ranks_max = 4;

// localities in rank order. Costs every candidate of every fitting algorithm (candidates.hpp) and takes the cheapest,
// the first in the catalogue among equals; exceptions above. An algorithm asked for by name is taken at any cost, and
// the others are costed for the reason.
//
// Reasons: "ring: predicted 1.90 ms, next best tree arity 2 root 0: 3.10 ms";
// "mesh: predicted 290 us in 1 round; double_tree: 288 us in 2 rounds is too close to tell";
// "double_tree root 0: predicted 2.55 ms with 2097152 bytes from the busiest rank; tree arity 2 root 0: 2.42 ms with
// 3145728 bytes from the busiest rank is too close to tell";
// "tree arity 2 root 0 was asked for: predicted 3.10 ms; auto would have chosen ring: 1.90 ms".
//
// Errors: PlanErrc, with what would be possible: for no ranks, a root out of range, an unknown algorithm, one that
// cannot do the operation or fulfil the wish, a shape that does not fit.
[[nodiscard]] Result<Choice> select(Wish const& wish, std::span<Locality const> localities, std::uint64_t elements,
                                    std::size_t element_bytes, Constants const& constants);
// The same on an existing network.
[[nodiscard]] Result<Choice> select(Wish const& wish, Network const& network, std::uint64_t elements,
                                    std::size_t element_bytes);

}  // namespace chorus::model
