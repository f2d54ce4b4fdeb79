// Finds the fastest algorithm for each number of ranks and bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/core/op.hpp"
#include "collectives/core/result.hpp"
#include "collectives/model/constants.hpp"

namespace chorus::planning {

struct CrossoverRequest {
  Op op = Op::all_reduce;
  // Placement of p ranks: "flat", one per host; "hosts:W", W per host; "host", all on one host. Overrides may follow as
  // in topologies: "hosts:8;rack=25us,25Gbit/s".
  std::string placement = "flat";
  std::uint32_t ranks_max = 256;  // 2, 4, 8, ... up to this number; for hosts:W only full hosts
};

struct Winner {
  std::string algorithm;
  double seconds = 0;
  std::string second;  // the second best, "" if there is none
  double second_seconds = 0;
};

struct Crossover {
  Op op = Op::all_reduce;
  std::string placement;
  std::vector<std::uint32_t> ranks;
  std::vector<std::uint64_t> bytes;          // 4, 16, 64, ... 1 GiB; 0 for a barrier
  std::vector<std::vector<Winner>> winners;  // by ranks, then by bytes
};

// Simulates every algorithm at every point: about a second for 256 ranks. Errors: PlanErrc::bad_parameter for a
// malformed placement.
[[nodiscard]] Result<Crossover> crossover(CrossoverRequest const& request, model::Constants const& constants);

// Draws bytes from bottom to top, ranks from left to right, every point in the colour of its winner. Self-contained.
[[nodiscard]] std::string to_svg(Crossover const& crossover);

// Returns the topology of p ranks with this placement. Errors: PlanErrc::bad_parameter.
[[nodiscard]] Result<std::string> topology_of(std::string const& placement, std::uint32_t ranks);

}  // namespace chorus::planning
