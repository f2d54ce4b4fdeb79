// What a plan costs: alpha-beta-gamma per link level, followed through the instructions of all ranks.
//
// A message of m bytes over a link of level l takes alpha[l] + m * beta[l]; reducing m bytes takes m * gamma. A rank
// sends one message at a time and receives one message at a time (one network card each way). Source: Thakur,
// Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", IJHPCA 2005, applied to the
// instruction stream instead of to a closed formula.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collectives/core/locality.hpp"
#include "collectives/core/result.hpp"
#include "collectives/plan/algorithm.hpp"
#include "collectives/plan/program.hpp"

namespace chorus::model {

struct LinkCost {
  double alpha_s = 0;           // latency of a message
  double beta_s_per_byte = 0;   // inverse bandwidth
};

struct Constants {
  std::array<LinkCost, all_levels.size()> level;  // indexed by Level
  double gamma_s_per_byte = 0;                    // reduction

  // Loopback and shared-memory figures measured for the host level; 25, 10, 10 and 1 Gbit/s outwards.
  [[nodiscard]] static Constants defaults();
};

struct Cost {
  double seconds = 0;
  std::uint32_t rounds = 0;
  std::uint64_t bytes_per_rank = 0;  // sent by the busiest rank
};

// programs[r] runs on localities[r]. element_bytes * elements are the vector's bytes.
[[nodiscard]] Cost cost(std::span<plan::Program const> programs, std::span<Locality const> localities,
                        std::uint64_t elements, std::size_t element_bytes, Constants const& constants);

// The least that any all_reduce can need: 2 (p-1)/p of the vector sent per rank, and ceil(log2 p) steps.
struct LowerBound {
  std::uint32_t rounds = 0;
  std::uint64_t bytes_per_rank = 0;
};
[[nodiscard]] LowerBound lower_bound(Op op, std::uint32_t ranks, std::uint64_t bytes);

}  // namespace chorus::model
