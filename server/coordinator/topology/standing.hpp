// The localities of a group's members, and the measured links between them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectives/core/locality.hpp"
#include "collectives/model/constants.hpp"
#include "collectives/topology/gpu_ways.hpp"
#include "server/planning/place.hpp"

namespace chorus::coordinator {

// The link between two members, equal in both directions; a and b are indices in a list of members, or ranks.
struct PairLink {
  std::uint32_t a = 0, b = 0;
  double latency_s = 0;  // one way, beyond the latency within a host
  double bytes_per_s = 0;
};
using PairLinks = std::vector<PairLink>;

// Links over the GPUs of members of one host.
struct GpuWays {
  std::vector<topology::GpuWay> pairs;
  double memory_gbyte_per_s = 0;  // of the slowest GPU; 0: a member has no GPU, or unknown
  bool are_one = false;           // all members share one GPU, and have no other
};

struct Standing {
  std::vector<Locality> localities;
  std::shared_ptr<PairLinks const> pairs = nullptr;  // null: the links are those of the levels
  std::shared_ptr<GpuWays const> gpus = nullptr;     // null: no two members are joined by GPUs
  // Of members in rank order: the rank at each position (plan/positions.hpp); empty: rank i is at position i.
  std::vector<std::uint32_t> by_position = {};
};

// Returns the same members in another order: order[r] moves to position r. Without positions.
[[nodiscard]] Standing in_order(Standing const& members, std::span<std::uint32_t const> order);

// Returns the network of members in rank order, or by position if they have positions; at most
// topology::max_matrix_workers with pairs or GPUs.
// - A pair that was not measured has the slowest measured link; without any measurements, the link of its level.
// - Members of one host use shared memory, so their link has at least the bandwidth of the level, whatever HTTP
//   measured.
// - Members with joined GPUs have the bandwidth of the GPUs and the latency of the link without them.
// - If all members of a one-host group have GPUs, the GPUs move and reduce the data, and cores only start work.
// - If that is one GPU for all, work is serialised, and every message costs a turn of the processes on the GPU.
[[nodiscard]] planning::Place place_of(Standing in_rank_order, model::Constants const& constants);

}  // namespace chorus::coordinator
