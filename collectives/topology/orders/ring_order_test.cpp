#include "collectives/topology/orders/ring_order.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "collectives/topology/dgx1.hpp"
#include "collectives/topology/orders/order.hpp"

using namespace chorus;
using namespace chorus::topology;

namespace {

using Order = std::vector<std::uint32_t>;

Order identity(std::uint32_t size) {
  Order order(size);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Order shuffled(std::uint32_t size, std::minstd_rand& random) {
  auto order = identity(size);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

// Costs that differ between the two directions.
SquareMatrix random_costs(std::uint32_t size, std::minstd_rand& random) {
  SquareMatrix costs(size);
  for (std::uint32_t i = 0; i < size; ++i)
    for (std::uint32_t j = 0; j < size; ++j)
      if (i != j) costs.at(i, j) = 1 + static_cast<double>(random() % 1000);
  return costs;
}

// Points in the unit square.
SquareMatrix random_places(std::uint32_t size, std::minstd_rand& random) {
  std::uniform_real_distribution<double> coordinate(0, 1);
  std::vector<std::pair<double, double>> places(size);
  for (auto& [x, y] : places) x = coordinate(random), y = coordinate(random);
  SquareMatrix costs(size);
  for (std::uint32_t i = 0; i < size; ++i)
    for (std::uint32_t j = 0; j < size; ++j)
      costs.at(i, j) = std::hypot(places[i].first - places[j].first, places[i].second - places[j].second);
  return costs;
}

SquareMatrix symmetric(SquareMatrix costs) {
  for (std::uint32_t i = 0; i < costs.size(); ++i)
    for (std::uint32_t j = 0; j < i; ++j) costs.at(i, j) = costs.at(j, i);
  return costs;
}

double least_by_brute_force(SquareMatrix const& costs) {
  auto order = identity(costs.size());
  auto least = ring_cost(costs, order);
  while (std::next_permutation(order.begin() + 1, order.end())) least = std::min(least, ring_cost(costs, order));
  return least;
}

bool is_permutation(Order order) {
  std::sort(order.begin(), order.end());
  return order == identity(static_cast<std::uint32_t>(order.size()));
}

constexpr RingOrderOptions heuristic{.exact_up_to = 0};

}  // namespace

TEST_CASE("the exact ring costs what brute force finds") {
  std::minstd_rand random(1);
  for (std::uint32_t size = 1; size <= 8; ++size)
    for (int round = 0; round < (size == 8 ? 10 : 50); ++round) {
      auto const costs = random_costs(size, random);
      auto const given = shuffled(size, random);
      auto const ring = ring_order(costs, given);
      CHECK(ring.exact);
      CHECK(ring.cost == least_by_brute_force(costs));
      CHECK(ring.cost == ring_cost(costs, ring.order));
      CHECK(is_permutation(ring.order));
      CHECK(ring.order.front() == given.front());
    }
}

TEST_CASE("the search comes close to the exact ring") {
  std::minstd_rand random(2);
  for (int round = 0; round < 100; ++round) {
    auto const costs = round % 2 == 0 ? random_places(12, random) : symmetric(random_costs(12, random));
    auto const exact = ring_order(costs, identity(12));
    auto const found = ring_order(costs, identity(12), heuristic);
    CHECK(exact.exact);
    CHECK_FALSE(found.exact);
    CHECK(found.cost >= exact.cost * (1 - 1e-9));
    CHECK(found.cost <= exact.cost * 1.05);
  }
}

TEST_CASE("no ring is dearer than the given one, also where directions differ") {
  std::minstd_rand random(3);
  for (std::uint32_t const size : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 13u, 20u, 33u, 64u, 129u, 200u}) {
    auto const costs = random_costs(size, random);
    auto const given = shuffled(size, random);
    auto const ring = ring_order(costs, given, heuristic);
    CHECK(is_permutation(ring.order));
    CHECK(ring.order.front() == given.front());
    CHECK(ring.cost == ring_cost(costs, ring.order));
    CHECK(ring.cost <= ring_cost(costs, given));
    // The result cannot be improved: given back, it stays.
    CHECK(ring_order(costs, ring.order, heuristic).cost <= ring.cost);
  }
}

TEST_CASE("where nothing is cheaper the given order stays as it is") {
  SquareMatrix const alike(20, 3);
  Order given{7, 3, 1, 0, 2, 4, 5, 6, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8};
  CHECK(ring_order(alike, given).order == given);
  CHECK(ring_order(SquareMatrix(3, 1), Order{2, 0, 1}).order == Order{2, 0, 1});
  CHECK(ring_order(SquareMatrix(0), {}).order.empty());
}

TEST_CASE("the ring runs in the cheaper direction") {
  for (auto const& options : {RingOrderOptions{}, heuristic}) {
    SquareMatrix costs(5, 9);
    for (std::uint32_t i = 0; i < 5; ++i) costs.at((i + 1) % 5, i) = 1;
    CHECK(ring_order(costs, Order{0, 1, 2, 3, 4}, options).order == Order{0, 4, 3, 2, 1});
  }
}

TEST_CASE("the p3.16xlarge has a ring of double NVLinks") {
  auto const links = dgx1_matrix();
  for (auto const& options : {RingOrderOptions{}, heuristic}) {
    auto const order = ring_order(links.hop_seconds(1e6), identity(8), options).order;
    for (std::size_t i = 0; i < 8; ++i) CHECK(links.link(order[i], order[(i + 1) % 8]).bandwidth_gbyte_per_s == 50);
  }
}

TEST_CASE("a thousand workers with shuffled ranks are grouped as well as their labels group them") {
  std::minstd_rand random(5);
  std::vector<Locality> workers;
  for (auto const place : shuffled(1000, random))
    workers.push_back({"eu", "z" + std::to_string(place / 256), "r" + std::to_string(place / 64 % 4),
                       "h" + std::to_string(place / 8 % 8)});
  LevelLinks const levels{{{1e-6, 16}, {1e-5, 8}, {1e-4, 4}, {1e-3, 2}, {1e-2, 1}}};
  auto const seconds = LinkMatrix::from_localities(workers, levels).value().hop_seconds(1e6);
  auto const ring = ring_order(seconds, identity(1000));
  CHECK(ring.cost == doctest::Approx(ring_cost(seconds, order_by_locality(workers))).epsilon(1e-12));
  CHECK(ring.cost < ring_cost(seconds, identity(1000)) / 4);
}

TEST_CASE("a thousand places in a square are toured in about the length that is known for the best tour") {
  std::minstd_rand random(6);
  auto const costs = random_places(1000, random);
  auto const ring = ring_order(costs, identity(1000));
  CHECK(is_permutation(ring.order));
  // The best tours of 1000 random places have a length of 0.7313 sqrt(1000) on average (Johnson, McGeoch, 1997).
  CHECK(ring.cost < 1.08 * 0.7313 * std::sqrt(1000.0));
  CHECK(ring_order(costs, identity(1000)).order == ring.order);
}
