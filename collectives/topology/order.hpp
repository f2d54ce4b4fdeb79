// Ranks from localities: the ring order that crosses each level as rarely as possible.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/core/locality.hpp"

namespace chorus::topology {

// order[r] is the index, in `localities`, of the worker that becomes rank r. Grouped by region, zone, rack and host, so
// that a ring over the ranks enters and leaves every group once. Deterministic: ties keep the given order.
[[nodiscard]] std::vector<std::uint32_t> order_by_locality(std::span<Locality const> localities);

// Mean level distance of the ring's hops (0 within a host ... 4 across regions), for the workers in the given order.
[[nodiscard]] double ring_stretch(std::span<Locality const> in_rank_order);

}  // namespace chorus::topology
