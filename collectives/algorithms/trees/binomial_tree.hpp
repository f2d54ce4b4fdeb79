// The binomial tree: the parent of place v is v without its lowest bit, and the subtree of v is the places from v to v
// + (lowest bit) - 1, as far as they exist. For each distance 1, 2, 4, ... a place is a child, a parent, or neither.
#pragma once

#include "collectives/algorithms/common/rooted.hpp"

namespace chorus::algorithms {

[[nodiscard]] constexpr Subtree binomial_subtree(std::uint32_t ranks, std::uint32_t place) {
  auto const lowest_bit = place & (~place + 1);
  return {place, place == 0 ? ranks : std::min(lowest_bit, ranks - place)};
}

// Returns true if the place is a child of the place `distance` before it.
[[nodiscard]] constexpr bool is_binomial_child(std::uint32_t place, std::uint32_t distance) {
  return place % (2 * distance) == distance;
}
// Returns true if the place is the parent of the place `distance` after it.
[[nodiscard]] constexpr bool is_binomial_parent(std::uint32_t ranks, std::uint32_t place, std::uint32_t distance) {
  return place % (2 * distance) == 0 && place + distance < ranks;
}

}  // namespace chorus::algorithms
