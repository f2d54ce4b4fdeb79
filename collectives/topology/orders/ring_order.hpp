// The order of workers in a ring: the tour of least total cost over the hops.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/topology/square_matrix.hpp"

namespace chorus::topology {

struct RingOrder {
  std::vector<std::uint32_t> order;  // order[r] is the worker that becomes rank r
  double cost = 0;                   // ring_cost() of the order
  bool exact = false;                // true if no order costs less
};

struct RingOrderOptions {
  std::uint32_t exact_up_to = 12;  // workers; at most max_exact_ring
};
inline constexpr std::uint32_t max_exact_ring = 16;

// The sum over the hops order[0] -> order[1] -> ... -> order[0]; 0 for fewer than two workers.
[[nodiscard]] double ring_cost(SquareMatrix const& costs, std::span<std::uint32_t const> order);

// The cheapest ring that could be found, beginning with given.front(), and never more expensive than `given`, a
// permutation of all workers (the order by locality is a good one). If no ring is cheaper by more than rounding (1e-9),
// returns `given`. Costs are finite, not negative, and may differ between the two directions.
//
// Up to exact_up_to workers: exact, by Held and Karp's dynamic program over subsets, O(2^n n^2), 1 ms at 12. Above:
// 2-opt and Or-opt from `given` and from nearest-neighbour tours until neither improves, on the mean of both
// directions; then the better direction. About 20 ms at 1,000. Deterministic.
//
// Sources: Held, Karp, "A Dynamic Programming Approach to Sequencing Problems", 1962; Bentley, "Fast Algorithms for
// Geometric Traveling Salesman Problems", 1992 (neighbour lists and don't-look bits); Or, 1976.
[[nodiscard]] RingOrder ring_order(SquareMatrix const& costs, std::span<std::uint32_t const> given,
                                   RingOrderOptions options = {});

}  // namespace chorus::topology
