// The cost of a plan with every segment of every message followed, event by event, through the programs that run: slow,
// and what fold() and simulate() are held to.
#pragma once

#include <span>

#include "collectives/model/cost.hpp"
#include "collectives/model/network.hpp"
#include "collectives/plan/program.hpp"

namespace chorus::model {

// programs[r] is that of rank r of the network, as build() makes them for all ranks of one spec. Cores are not limited
// here. A message has at most so many segments.
[[nodiscard]] Cost follow(std::span<plan::Program const> programs, Network const& network, std::uint64_t elements,
                          std::size_t element_bytes, std::size_t most_segments = 64);

}  // namespace chorus::model
