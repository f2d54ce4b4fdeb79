// Where the members of a group stand, and what they measured of the ways between them.
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

// The way between two members, the same in both directions; a and b are indices in a list of them, or ranks.
struct PairLink {
  std::uint32_t a = 0, b = 0;
  double latency_s = 0;  // one way, beyond what two workers of one host have
  double bytes_per_s = 0;
};
using PairLinks = std::vector<PairLink>;

// Over the GPUs of members of one host.
struct GpuWays {
  std::vector<topology::GpuWay> pairs;
  double memory_gbyte_per_s = 0;  // of the slowest of all members' GPUs; 0: somebody has none, or it is not known
  bool are_one = false;           // all members have the same GPU, and no other
};

struct Standing {
  std::vector<Locality> localities;
  std::shared_ptr<PairLinks const> pairs = nullptr;  // null: the links are those of the levels
  std::shared_ptr<GpuWays const> gpus = nullptr;     // null: no two members are joined by GPUs
};

// The same members, of which order[r] is now the one at r.
[[nodiscard]] Standing in_order(Standing const& members, std::span<std::uint32_t const> order);

// The network between members that stand so, in rank order, at most topology::max_matrix_workers with pairs or GPUs. A
// pair that is missing has the slowest link that was measured, and without any that of its level. Members of one host
// reach each other's memory, whatever HTTP measured there: their link is as fast as the level's at least. Where their
// GPUs are joined it is as fast as they are, with the latency as it would be without. In a group of one host whose
// members all have GPUs, these move and reduce what is theirs, and cores only say when. Where that is one GPU for all,
// everything takes its time one after the other, and every message costs a turn of the processes there.
[[nodiscard]] planning::Place place_of(Standing in_rank_order, model::Constants const& constants);

}  // namespace chorus::coordinator
