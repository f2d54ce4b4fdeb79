// Ranks and roots from localities: the ring order that crosses each level as rarely as possible, and the worker in the
// middle. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/core/locality.hpp"

namespace chorus::topology {

// order[r] is the index, in `localities`, of the worker that becomes rank r. Workers are grouped by region, zone, rack
// and host, so that a ring over the ranks enters and leaves every group once; as levels nest, no order has less
// stretch. Groups are ordered by their first member, and members as given: deterministic. O(n log n).
[[nodiscard]] std::vector<std::uint32_t> order_by_locality(std::span<Locality const> localities);

// Mean level distance of the ring's hops (0 within a host ... 4 across regions), for the workers in the given order.
// The hop from the last to the first counts. 0 for fewer than two workers.
[[nodiscard]] double ring_stretch(std::span<Locality const> in_rank_order);

// The worker with the least sum of level distances to all others, the first of equals: the best root. O(n log n).
// Requires at least one worker.
[[nodiscard]] std::uint32_t center(std::span<Locality const> localities);

}  // namespace chorus::topology
