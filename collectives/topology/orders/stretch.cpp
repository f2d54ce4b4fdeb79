#include "collectives/topology/orders/stretch.hpp"

#include <algorithm>
#include <limits>

#include "collectives/core/assert.hpp"
#include "collectives/topology/orders/ring_order.hpp"

namespace chorus::topology {

double average_stretch(SquareMatrix const& distances, std::span<std::uint32_t const> order, double unit) {
  CHORUS_ASSERT(unit > 0, "stretch is measured against a positive distance");
  if (order.size() < 2) return 0;
  return ring_cost(distances, order) / (unit * static_cast<double>(order.size()));
}

double least_hop(SquareMatrix const& distances) {
  if (distances.size() < 2) return 0;
  auto least = std::numeric_limits<double>::infinity();
  for (std::uint32_t i = 0; i < distances.size(); ++i)
    for (std::uint32_t j = 0; j < distances.size(); ++j)
      if (i != j) least = std::min(least, distances.at(i, j));
  return least;
}

}  // namespace chorus::topology
