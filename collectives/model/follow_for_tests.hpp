// follow(): the cost of a plan, from every segment of every message, event by event, in the programs that run. Slow;
// the reference for fold() and simulate().
#pragma once

#include <span>

#include "collectives/model/cost.hpp"
#include "collectives/model/network.hpp"
#include "collectives/plan/program.hpp"

namespace chorus::model {

// programs[r] is the program of rank r of the network, as build() makes them for all ranks of one spec. Cores are not
// limited here. A message has at most `most_segments` segments.
[[nodiscard]] Cost follow(std::span<plan::Program const> programs, Network const& network, std::uint64_t elements,
                          std::size_t element_bytes, std::size_t most_segments = 64);

}  // namespace chorus::model
