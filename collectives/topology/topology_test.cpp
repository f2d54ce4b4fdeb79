#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/topology/orders/order.hpp"
#include "collectives/topology/roles.hpp"

using namespace chorus;
using namespace chorus::topology;

namespace {

std::vector<Locality> in_order(std::vector<Locality> const& localities, std::vector<std::uint32_t> const& order) {
  std::vector<Locality> ordered;
  for (auto worker : order) ordered.push_back(localities[worker]);
  return ordered;
}

Role role(plan::Algorithm const& algorithm, plan::Spec spec, plan::Rank rank) {
  spec.algorithm = algorithm.name;
  return role_of(plan::build(algorithm, spec, rank).value());
}

using Ranks = std::vector<plan::Rank>;

}  // namespace

TEST_CASE("workers are grouped by host, hosts by rack, in the order of first appearance") {
  std::vector<Locality> const workers{
      {"eu", "z", "r2", "h1"}, {"us", "z", "r1", "h1"}, {"eu", "z", "r1", "h1"}, {"eu", "z", "r2", "h2"},
      {"eu", "z", "r1", "h1"}, {"us", "z", "r1", "h1"}, {"eu", "z", "r2", "h1"},
  };
  CHECK(order_by_locality(workers) == std::vector<std::uint32_t>{0, 6, 3, 2, 4, 1, 5});
}

TEST_CASE("workers of one place keep their order") {
  CHECK(order_by_locality(std::vector<Locality>(4)) == std::vector<std::uint32_t>{0, 1, 2, 3});
  CHECK(order_by_locality({}).empty());
}

TEST_CASE("the same label within two groups is two groups") {
  std::vector<Locality> const workers{{"eu", "a", "r", "h"}, {"us", "a", "r", "h"}, {"eu", "a", "r", "h"}};
  CHECK(order_by_locality(workers) == std::vector<std::uint32_t>{0, 2, 1});
}

TEST_CASE("stretch is the mean distance of the hops of the ring") {
  Locality const a{"eu", "z", "r", "h1"}, b{"eu", "z", "r", "h2"}, c{"us", "z", "r", "h1"};
  CHECK(ring_stretch({}) == 0);
  CHECK(ring_stretch(std::vector{a}) == 0);
  CHECK(ring_stretch(std::vector{a, a}) == 0);
  CHECK(ring_stretch(std::vector{a, b}) == 1);
  CHECK(ring_stretch(std::vector{a, a, b, b}) == 0.5);
  CHECK(ring_stretch(std::vector{a, b, a, b}) == 1);
  CHECK(ring_stretch(std::vector{a, b, c, c}) == 9.0 / 4);
}

TEST_CASE("no order of seven workers has less stretch than the one by locality") {
  std::minstd_rand random(3);
  auto const label = [&] { return std::string(1, static_cast<char>('a' + random() % 2)); };
  for (int round = 0; round < 20; ++round) {
    std::vector<Locality> workers;
    for (int w = 0; w < 7; ++w) workers.push_back({label(), label(), label(), label()});
    std::vector<std::uint32_t> order(workers.size());
    std::iota(order.begin(), order.end(), 0);
    auto least = 4.0;
    do least = std::min(least, ring_stretch(in_order(workers, order)));
    while (std::next_permutation(order.begin() + 1, order.end()));
    CHECK(ring_stretch(in_order(workers, order_by_locality(workers))) == least);
  }
}

TEST_CASE("the center is the worker nearest to all others") {
  std::minstd_rand random(4);
  auto const label = [&] { return std::string(1, static_cast<char>('a' + random() % 3)); };
  for (int round = 0; round < 200; ++round) {
    std::vector<Locality> workers;
    for (auto w = 1 + random() % 12; w > 0; --w) workers.push_back({label(), label(), label(), label()});
    auto const distance = [&](Locality const& from) {
      return std::accumulate(workers.begin(), workers.end(), 0, [&](int sum, Locality const& to) {
        return sum + static_cast<int>(shared_level(from, to));
      });
    };
    auto const nearest = std::min_element(workers.begin(), workers.end(),
                                          [&](auto const& a, auto const& b) { return distance(a) < distance(b); });
    CHECK(center(workers) == nearest - workers.begin());
  }
}

TEST_CASE("in a tree there are a root, inner ranks and leaves") {
  plan::Spec const spec{.ranks = 6, .root = 4, .arity = 2};  // nodes 0..5 are ranks 4 5 0 1 2 3
  CHECK(role(algorithms::tree, spec, 4) == Role{"root", {2, 5}, {2, 5}});
  CHECK(role(algorithms::tree, spec, 5) == Role{"interior", {0, 1, 4}, {0, 1, 4}});
  CHECK(role(algorithms::tree, spec, 2) == Role{"interior", {3, 4}, {3, 4}});
  CHECK(role(algorithms::tree, spec, 3) == Role{"leaf", {2}, {2}});
}

TEST_CASE("in centralized there are a root and leaves, also for two") {
  CHECK(role(algorithms::centralized, {.ranks = 4, .root = 1}, 1) == Role{"root", {0, 2, 3}, {0, 2, 3}});
  CHECK(role(algorithms::centralized, {.ranks = 4, .root = 1}, 3) == Role{"leaf", {1}, {1}});
  CHECK(role(algorithms::centralized, {.ranks = 2}, 1).name == "leaf");
  CHECK(role(algorithms::centralized, {.ranks = 1}, 0) == Role{"root", {}, {}});
}

TEST_CASE("in a ring all are members") {
  CHECK(role(algorithms::ring, {.ranks = 4}, 0) == Role{"member", {1}, {3}});
  CHECK(role(algorithms::ring, {.ranks = 2}, 0) == Role{"member", {1}, {1}});
  CHECK(role(algorithms::ring, {.ranks = 1}, 0) == Role{"member", {}, {}});
}
