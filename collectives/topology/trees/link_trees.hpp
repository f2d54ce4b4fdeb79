// Balanced trees of greatest weight over measured links, one per root, that share as few links as possible.
//
// Source: Apache MXNet, "Single machine All Reduce Topology-aware Communication" (tree KVStore) and its
// kvstore/gpu_topology.h: Kernighan-Lin bisection, exhaustive search where that gets stuck, a link usage penalty of
// 0.7. Differences: the exhaustive search is a dynamic program, exact up to 16 workers (MXNet's backtracking: 8); trees
// that are not searched are improved by exchanges; slow detours are refused outright; and nothing is random.
// trees that are not searched are improved by exchanges; slow detours are refused outright; and nothing is random.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/core/result.hpp"
#include "collectives/plan/spec.hpp"
#include "collectives/topology/link_matrix.hpp"

namespace chorus::topology {

inline constexpr std::uint32_t max_exhaustive_binary = 16;  // workers, for two ways
inline constexpr std::uint32_t max_exhaustive_wider = 12;   // for more than two ways

struct LinkTreeOptions {
  std::uint32_t ways = 2;  // parts into which a level of the tree cuts a cluster
  double penalty = 0.7;    // factor on a link's weight for each earlier tree that uses it
  // Number of workers, within the limits above. A tree over 12 takes 0.5 ms, over 14 5 ms, over 16 40 ms.
  std::uint32_t exhaustive_up_to = 12;
};

struct LinkTree {
  std::vector<plan::Rank> parent;  // parent[r] == r for the root alone
  double weight = 0;               // sum of the penalised bandwidths of its links when it was built
  bool exact = false;              // no balanced tree from this root is better
};

// One tree per entry of `roots`, in that order; later trees see penalised weights for links of earlier ones.
//
// Balanced: a cluster of s workers, all of them at first, is cut into `ways` parts whose sizes differ by one at most.
// The root stays in one part; each other part hangs from the root by its heaviest link and is cut in turn, below the
// worker at that link's end. So a tree has at most ceil(log_ways p) levels, and a worker at most ways - 1 children per
// level: with two ways the tree is binomial, and a step of every level is one message per worker. MXNet calls this a
// balanced binary tree; its inner nodes are workers that appear on several levels.
//
// Better means: fewer slow links; then more weight. A link is as fast as the slower of its two directions. It is slow
// if a detour over other links is more than three times as fast (as for PCI-E where NVLinks connect).
//
// Errors: PlanErrc::rank_out_of_range for a root that is no worker; bad_parameter for ways < 2 or a penalty outside (0,
// 1]. Without exhaustive search a tree over 64 workers takes 1 ms, over 1,000 0.2 s.
[[nodiscard]] Result<std::vector<LinkTree>> link_trees(LinkMatrix const& links, std::span<plan::Rank const> roots,
                                                       LinkTreeOptions options = {});

}  // namespace chorus::topology
