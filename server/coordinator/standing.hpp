// Where the members of a group stand, and what they measured of the ways between them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectives/core/locality.hpp"
#include "collectives/model/constants.hpp"
#include "server/planning/place.hpp"

namespace chorus::coordinator {

// The way between two members, the same in both directions; a and b are indices in a list of them, or ranks.
struct PairLink {
  std::uint32_t a = 0, b = 0;
  double latency_s = 0;  // one way, beyond what two workers of one host have
  double bytes_per_s = 0;
};
using PairLinks = std::vector<PairLink>;

struct Standing {
  std::vector<Locality> localities;
  std::shared_ptr<PairLinks const> pairs = nullptr;  // null: the links are those of the levels
};

// The same members, of which order[r] is now the one at r.
[[nodiscard]] Standing in_order(Standing const& members, std::span<std::uint32_t const> order);

// The network between members that stand so, in rank order, at most topology::max_matrix_workers with pairs. A pair
// that is missing has the slowest link that was measured, and without any that of its level. Members of one host reach
// each other's memory, whatever HTTP measured there: their link is as fast as the level's at least.
[[nodiscard]] planning::Place place_of(Standing in_rank_order, model::Constants const& constants);

}  // namespace chorus::coordinator
