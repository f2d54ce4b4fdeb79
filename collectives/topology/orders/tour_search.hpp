// Good tours of many workers: nearest neighbours, 2-opt and Or-opt.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/topology/square_matrix.hpp"

namespace chorus::topology {

using Tour = std::vector<std::uint32_t>;

// A tour that goes from `start` always to the nearest worker not yet visited, the first of equals.
[[nodiscard]] Tour nearest_neighbour_tour(SquareMatrix const& costs, std::uint32_t start);

// Improves tours by exchanges until none helps: 2-opt (reverse a part) and Or-opt (move up to three in a row, also
// reversed), each only towards a worker's nearest neighbours. Deterministic.
class TourSearch {
 public:
  // costs must be symmetric and must outlive this object.
  explicit TourSearch(SquareMatrix const& costs);

  // A tour that is not more expensive. Stops after 100 exchanges per worker at the latest; no tour was seen to need
  // more.
  [[nodiscard]] Tour improve(Tour tour) const;

 private:
  SquareMatrix const& costs_;
  std::uint32_t neighbours_;            // per worker
  std::vector<std::uint32_t> nearest_;  // neighbours_ entries per worker, the nearest first
};

}  // namespace chorus::topology
