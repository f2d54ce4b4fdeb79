// The cost of a plan: alpha-beta-gamma per link level.
//
// A message of m bytes over a link of level l takes alpha[l] + m * beta[l]; reducing m bytes takes m * gamma. A rank
// sends one message at a time and receives one message at a time, in the order in which they become ready; a receiver
// reduces before it takes the next. Only a part of alpha delays the next message of each end (Constants::overhead_s). A
// message starts when both ends are ready (rendezvous). Long messages flow in segments, so that a tree is a pipeline
// here as in the engine. Not modelled: the cost of a segment beyond its bytes.
//
// Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", IJHPCA 2005,
// with the overhead of Culler et al., "LogP: Towards a Realistic Model of Parallel Computation", PPoPP 1993; applied to
// the instructions instead of to a closed formula: summed by fold(), followed one by one by simulate().
#pragma once

#include <cstdint>

#include "collectives/core/op.hpp"
#include "collectives/model/constants.hpp"

namespace chorus::model {

struct Cost {
  double seconds = 0;
  std::uint32_t rounds = 0;          // rounds in which any rank sends a message
  std::uint64_t bytes_per_rank = 0;  // sent by the busiest rank
};

// The minimum of every algorithm on every network: steps, in each of which a rank sends one message, and bytes sent by
// the busiest rank.
struct LowerBound {
  std::uint32_t rounds = 0;
  std::uint64_t bytes_per_rank = 0;
};
// `bytes` are those of the whole vector: of the concatenated one in all_gather, gather, scatter and the like.
[[nodiscard]] LowerBound lower_bound(Op op, std::uint32_t ranks, std::uint64_t bytes);

}  // namespace chorus::model
