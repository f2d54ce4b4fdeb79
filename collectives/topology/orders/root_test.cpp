#include "collectives/topology/orders/root.hpp"

#include <doctest/doctest.h>

#include "collectives/topology/link_matrix.hpp"
#include "collectives/topology/orders/order.hpp"
#include "collectives/topology/underlay.hpp"

using namespace chorus;
using namespace chorus::topology;

namespace {

std::uint32_t root_of(Underlay const& network, std::vector<std::uint32_t> const& workers) {
  return root_of_least_cost(hop_counts(network, workers).value());
}

}  // namespace

TEST_CASE("the root of a star is its middle, of a chain its middle too") {
  CHECK(root_of({4, {{2, 0}, {2, 1}, {2, 3}}}, {0, 1, 2, 3}) == 2);
  CHECK(root_of({5, {{0, 1}, {1, 2}, {2, 3}, {3, 4}}}, {0, 1, 2, 3, 4}) == 2);
}

TEST_CASE("among equals the first") {
  CHECK(root_of({4, {{0, 1}, {1, 2}, {2, 3}, {3, 0}}}, {0, 1, 2, 3}) == 0);
  CHECK(root_of_least_cost(SquareMatrix(1)) == 0);
}

TEST_CASE("of two with the same sum the one whose farthest worker is nearer") {
  // Sums of 0 to 3: 7, 7, 7, 9; farthest: 4, 3, 4, 4.
  SquareMatrix costs(4);
  auto const both = [&](std::uint32_t i, std::uint32_t j, double cost) { costs.at(i, j) = costs.at(j, i) = cost / 2; };
  both(0, 1, 2), both(0, 2, 1), both(0, 3, 4);
  both(1, 2, 2), both(1, 3, 3);
  both(2, 3, 4);
  CHECK(root_of_least_cost(costs) == 1);
}

TEST_CASE("both directions count") {
  SquareMatrix costs(3, 1);
  costs.at(0, 1) = costs.at(0, 2) = 0.1;  // 0 sends cheaply,
  costs.at(1, 0) = costs.at(2, 0) = 9;    // but is expensive to reach
  CHECK(root_of_least_cost(costs) == 1);
}

TEST_CASE("a tie is not decided by rounding") {
  SquareMatrix costs(3);
  costs.at(0, 1) = 0.1 + 0.2;
  costs.at(1, 2) = 0.3;
  costs.at(2, 0) = 0.3;
  CHECK(root_of_least_cost(costs) == 0);
}

TEST_CASE("over levels of locality the root is one of those with the most near workers") {
  std::vector<Locality> const workers{
      {"us", "", "", "a"}, {"eu", "", "", "b"}, {"eu", "", "", "c"}, {"eu", "", "", "c"}};
  LevelLinks const levels{{{1e-6, 16}, {1e-5, 8}, {1e-4, 4}, {1e-3, 2}, {1e-2, 1}}};
  auto const seconds = LinkMatrix::from_localities(workers, levels).value().hop_seconds(1e6);
  CHECK(root_of_least_cost(seconds) == 2);
  CHECK(center(workers) == 2);
}
