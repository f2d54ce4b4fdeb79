#include "collectives/topology/orders/ring_order.hpp"

#include <algorithm>

#include "collectives/core/assert.hpp"
#include "collectives/topology/orders/held_karp.hpp"
#include "collectives/topology/orders/tour_search.hpp"

namespace chorus::topology {
namespace {

constexpr double rounding = 1e-9;

// Number of nearest-neighbour tours that are improved; limits the time for a ring of any size to milliseconds.
std::uint32_t starts_for(std::uint32_t workers) {
  if (workers <= 32) return workers;
  return workers <= 128 ? 8 : 1;
}

// Tile by tile, so that reading columns stays in the cache.
SquareMatrix mean_of_both_directions(SquareMatrix const& costs) {
  constexpr std::uint32_t tile = 32;
  auto const size = costs.size();
  SquareMatrix mean(size);
  for (std::uint32_t row = 0; row < size; row += tile)
    for (std::uint32_t column = row; column < size; column += tile)
      for (auto i = row; i < std::min(row + tile, size); ++i)
        for (auto j = std::max(column, i + 1); j < std::min(column + tile, size); ++j)
          mean.at(i, j) = mean.at(j, i) = (costs.at(i, j) + costs.at(j, i)) / 2;
  return mean;
}

void begin_with(Tour& tour, std::uint32_t worker) {
  std::rotate(tour.begin(), std::find(tour.begin(), tour.end(), worker), tour.end());
}

// The cheapest of the tours found, with the cheaper direction.
Tour search(SquareMatrix const& costs, std::span<std::uint32_t const> given) {
  auto const mean = mean_of_both_directions(costs);
  TourSearch const exchanges(mean);
  std::vector<Tour> starts{Tour(given.begin(), given.end())};
  auto const count = starts_for(costs.size());
  for (std::uint32_t i = 0; i < count; ++i)
    starts.push_back(nearest_neighbour_tour(mean, given[std::size_t{i} * given.size() / count]));
  if (count == 1 && ring_cost(mean, starts[0]) > ring_cost(mean, starts[1])) std::swap(starts[0], starts[1]);
  if (count == 1) starts.pop_back();  // a large ring: only the better start is improved

  Tour best;
  for (auto& start : starts) {
    auto tour = exchanges.improve(std::move(start));
    if (best.empty() || ring_cost(mean, tour) < ring_cost(mean, best) * (1 - rounding)) best = std::move(tour);
  }
  auto const other_way = Tour(best.rbegin(), best.rend());
  return ring_cost(costs, other_way) < ring_cost(costs, best) * (1 - rounding) ? other_way : best;
}

}  // namespace

double ring_cost(SquareMatrix const& costs, std::span<std::uint32_t const> order) {
  if (order.size() < 2) return 0;
  auto sum = costs.at(order.back(), order.front());
  for (std::size_t i = 0; i + 1 < order.size(); ++i) sum += costs.at(order[i], order[i + 1]);
  return sum;
}

RingOrder ring_order(SquareMatrix const& costs, std::span<std::uint32_t const> given, RingOrderOptions options) {
  CHORUS_ASSERT(given.size() == costs.size(), "the given order holds every worker once");
  CHORUS_ASSERT(options.exact_up_to <= max_exact_ring, "an exact ring of so many takes too much memory");
  RingOrder result{{given.begin(), given.end()}, ring_cost(costs, given), costs.size() <= options.exact_up_to};
  if (given.empty()) return result;
  auto found = result.exact ? cheapest_tour(costs) : search(costs, given);
  begin_with(found, given.front());
  if (auto const cost = ring_cost(costs, found); cost < result.cost * (1 - rounding)) {
    result.cost = cost;
    result.order = std::move(found);
  }
  return result;
}

}  // namespace chorus::topology
