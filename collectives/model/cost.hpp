// What a plan costs: alpha-beta-gamma per link level, followed through the instructions of all ranks in virtual time.
//
// A message of m bytes over a link of level l takes alpha[l] + m * beta[l]; reducing m bytes takes m * gamma. A rank
// sends one message at a time and receives one message at a time (one network card each way), in the order in which
// they become ready; a receiver reduces before it takes the next. A message starts when both ends are ready
// (rendezvous). Segments are followed one by one, so that a tree is a pipeline here as it is in the engine. Left out:
// contention inside the network, what a host's processes take from each other, and what a segment costs beyond its
// bytes.
//
// Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", IJHPCA 2005,
// applied to the instruction stream instead of to a closed formula.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "collectives/core/locality.hpp"
#include "collectives/core/op.hpp"
#include "collectives/plan/program.hpp"

namespace chorus::model {

struct LinkCost {
  double alpha_s = 0;          // latency of a message
  double beta_s_per_byte = 0;  // inverse bandwidth
};

struct Constants {
  std::array<LinkCost, all_levels.size()> level;  // indexed by Level
  double gamma_s_per_byte = 0;                    // reduction
  std::uint64_t segment_bytes = 256 * 1024;       // as schedules cut chunks

  [[nodiscard]] LinkCost const& link(Level l) const { return level[static_cast<std::size_t>(l)]; }

  // Orders of magnitude to choose by until links have been measured: see constants.cpp for where each comes from.
  [[nodiscard]] static Constants defaults();
};

// Segments of messages that are followed in one plan, all ranks together: of long vectors in many messages the model's
// segments are longer than the schedule's. Bounds the time of cost() to about a millisecond on up to 64 ranks.
inline constexpr std::size_t max_followed_segments = 4096;

struct Cost {
  double seconds = 0;
  std::uint32_t rounds = 0;          // in which a message is sent, by whomever
  std::uint64_t bytes_per_rank = 0;  // sent by the busiest rank
};

// programs[r] runs on localities[r]; the programs are those of build() for all ranks of one spec, or proved by
// verify::check. element_bytes * elements are the vector's bytes.
[[nodiscard]] Cost cost(std::span<plan::Program const> programs, std::span<Locality const> localities,
                        std::uint64_t elements, std::size_t element_bytes, Constants const& constants);

// The least that any algorithm needs, whatever the network: steps, each rank sending one message in each, and bytes
// sent by the busiest rank. `bytes` is the whole vector, the concatenated one for all_gather, gather, scatter and the
// like.
struct LowerBound {
  std::uint32_t rounds = 0;
  std::uint64_t bytes_per_rank = 0;
};
[[nodiscard]] LowerBound lower_bound(Op op, std::uint32_t ranks, std::uint64_t bytes);

}  // namespace chorus::model
