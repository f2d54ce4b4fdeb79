// Links between pairs of members: order of the measurements, what is kept, and the ranks and tables that follow.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "server/coordinator/cluster/link_probes.hpp"
#include "server/coordinator/groups/rank_assignment.hpp"

using namespace chorus;
using namespace chorus::coordinator;

namespace {

std::vector<Locality> hosts(std::size_t count) {
  std::vector<Locality> localities(count);
  for (std::size_t i = 0; i < count; ++i) localities[i].host = "h" + std::to_string(i);
  return localities;
}

constexpr double within_rack = 1e9, across = 1e8;  // bytes per second

// Two racks that the labels do not show: workers with odd and with even numbers.
PairLink between(std::uint32_t a, std::uint32_t b) {
  return a % 2 == b % 2 ? PairLink{a, b, 20e-6, within_rack} : PairLink{a, b, 80e-6, across};
}

template <class LinkOf>
Standing measured(std::vector<Locality> localities, LinkOf link_of) {
  PairLinks pairs;
  for (std::uint32_t a = 0; a < localities.size(); ++a)
    for (auto b = a + 1; b < localities.size(); ++b) pairs.push_back(link_of(a, b));
  return {std::move(localities), std::make_shared<PairLinks const>(std::move(pairs))};
}

std::size_t crossings(std::vector<std::uint32_t> const& order) {
  std::size_t count = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank)
    count += order[rank] % 2 != order[(rank + 1) % order.size()] % 2 ? 1 : 0;
  return count;
}

RankAssignment arranged(Standing const& standing) {
  return arrange(standing, {}, model::Constants::defaults()).value();
}

Worker worker(std::string id, std::uint64_t incarnation = 1) {
  Worker worker;
  worker.url = "http://" + id + ":1";
  worker.id = std::move(id);
  worker.incarnation = incarnation;
  return worker;
}

void join(Membership& membership, Worker const& worker) {
  CHECK(membership.join({worker.id, worker.incarnation, worker.url, {}, "1"}, {}).has_value());
}

}  // namespace

TEST_CASE("every pair measures once, and no worker is in two pairs of a round") {
  for (std::uint32_t count = 0; count <= 33; ++count) {
    auto const rounds = rounds_of_pairs(count);
    CHECK(rounds.size() == (count < 2 ? 0 : count - 1 + count % 2));
    std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
    for (auto const& round : rounds) {
      std::set<std::uint32_t> busy;
      for (auto const& [a, b] : round) {
        CHECK(a < b);
        CHECK(b < count);
        CHECK(busy.insert(a).second);
        CHECK(busy.insert(b).second);
        CHECK(pairs.insert({a, b}).second);
      }
    }
    CHECK(pairs.size() == std::size_t{count} * (std::max(count, 1U) - 1) / 2);
  }
}

TEST_CASE("ranks follow measured pairs where labels show nothing: the ring crosses between two racks twice") {
  auto const by_links = arranged(measured(hosts(8), between));
  CHECK(crossings(by_links.order) == 2);
  CHECK(by_links.order.front() == 0);
  CHECK(by_links.stretch.assigned < by_links.stretch.arrival_order);
  auto const by_locality = arranged({hosts(8)});
  CHECK(crossings(by_locality.order) == 8);
}

TEST_CASE("the largest number of measured members is arranged by their links") {
  for (std::size_t const count : {16, 17, 32}) CHECK(crossings(arranged(measured(hosts(count), between)).order) == 2);
}

TEST_CASE("links that vary by less than a tenth keep the order by locality, and both numbers are equal") {
  auto const almost_even = [](std::uint32_t a, std::uint32_t b) {
    return PairLink{a, b, 20e-6, a % 2 == b % 2 ? 1.04e9 : 0.98e9};
  };
  auto const rank_assignment = arranged(measured(hosts(8), almost_even));
  CHECK(rank_assignment.order == std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(rank_assignment.stretch.assigned == rank_assignment.stretch.arrival_order);
}

TEST_CASE("the measured order is compared with the one by locality, not with the listed order") {
  auto localities = hosts(6);
  for (std::size_t i = 0; i < 6; ++i) localities[i].rack = i % 2 == 0 ? "a" : "b";
  auto const rank_assignment = arranged(measured(localities, between));
  CHECK(crossings(rank_assignment.order) == 2);
  CHECK(rank_assignment.stretch.assigned == rank_assignment.stretch.arrival_order);
}

TEST_CASE("a pair that was not measured is as slow as the slowest measured one") {
  auto standing = measured(hosts(4), between);
  auto pairs = *standing.pairs;
  std::erase_if(pairs, [](PairLink const& pair) { return pair.a == 0 && pair.b == 2; });
  standing.pairs = std::make_shared<PairLinks const>(pairs);
  auto const place = place_of(standing, model::Constants::defaults());
  CHECK(place.links->link(0, 2) == place.links->link(0, 1));
  CHECK(place.links->link(2, 0) == place.links->link(0, 2));
  CHECK(place.links->link(1, 3).bandwidth_gbyte_per_s == doctest::Approx(1));
}

TEST_CASE("without measurements links are those of the levels") {
  auto const constants = model::Constants::defaults();
  auto const place = place_of({hosts(2), std::make_shared<PairLinks const>()}, constants);
  auto const& rack = constants.link(Level::rack);
  CHECK(place.links->link(0, 1).latency_s == rack.alpha_s);
  CHECK(place.links->link(0, 1).bandwidth_gbyte_per_s == doctest::Approx(1e-9 / rack.beta_s_per_byte));
}

TEST_CASE("HTTP between two workers of a host does not describe their shared memory") {
  auto const constants = model::Constants::defaults();
  std::vector<Locality> const together(2, Locality{.host = "h"});
  auto const place = place_of(measured(together, [](auto a, auto b) { return PairLink{a, b, 0, 1e8}; }), constants);
  CHECK(place.links->link(0, 1).bandwidth_gbyte_per_s ==
        doctest::Approx(1e-9 / constants.link(Level::host).beta_s_per_byte));
}

TEST_CASE("impossible links are limited") {
  auto const mad = [](std::uint32_t a, std::uint32_t b) { return PairLink{a, b, 1e300, 1e300}; };
  CHECK(arranged(measured(hosts(3), mad)).order.size() == 3);
}

TEST_CASE("roots and the table follow the links of the pairs") {
  // Worker 2 is close to all others, which are far from each other.
  auto const star = [](std::uint32_t a, std::uint32_t b) {
    return a == 2 || b == 2 ? PairLink{a, b, 10e-6, 4e9} : PairLink{a, b, 5e-3, 1e8};
  };
  auto const rank_assignment = arranged(measured(hosts(6), star));
  auto const rank_of_2 = std::ranges::find(rank_assignment.order, 2U) - rank_assignment.order.begin();
  auto const small = std::ranges::find(rank_assignment.selection, "all_reduce", &api::Selection::op);
  REQUIRE(small != rank_assignment.selection.end());
  CHECK(small->root == rank_of_2);
  auto const& roles = rank_assignment.roles[static_cast<std::size_t>(rank_of_2)];
  auto const central = std::ranges::find(roles, "centralized", &api::RoleInAlgorithm::algorithm);
  REQUIRE(central != roles.end());
  CHECK(central->role == "root");
}

TEST_CASE("pairs are stored in both directions, by incarnation and address") {
  LinkMeasurements memory(10);
  auto const a = end_of(worker("a"));
  auto const b = end_of(worker("b"));
  memory.remember(b, a, {1e-5, 1e9});
  REQUIRE(memory.find(a, b).has_value());
  CHECK(memory.find(a, b)->bytes_per_s == 1e9);
  memory.remember(a, b, {1e-5, 2e9});
  CHECK(memory.find(b, a)->bytes_per_s == 2e9);
  CHECK(memory.size() == 1);
  CHECK_FALSE(memory.find(a, end_of(worker("b", 2))).has_value());
  auto moved = worker("b");
  moved.url = "http://elsewhere:1";
  CHECK_FALSE(memory.find(a, end_of(moved)).has_value());
}

TEST_CASE("the number of stored pairs is limited: the oldest is forgotten") {
  LinkMeasurements memory(2);
  auto const a = end_of(worker("a"));
  auto const b = end_of(worker("b"));
  auto const c = end_of(worker("c"));
  memory.remember(a, b, {});
  memory.remember(a, c, {});
  memory.remember(a, b, {});
  memory.remember(b, c, {});
  CHECK(memory.size() == 2);
  CHECK(memory.find(a, b).has_value());
  CHECK_FALSE(memory.find(a, c).has_value());
}

TEST_CASE("pairs with a worker that has left are forgotten, those with a lost worker are not") {
  Membership membership(std::chrono::milliseconds(1000));
  for (auto const* id : {"a", "b", "c", "d"}) join(membership, worker(id));
  LinkMeasurements memory(10);
  for (auto const* id : {"b", "c", "d"}) memory.remember(end_of(worker("a")), end_of(worker(id)), {});
  CHECK(membership.mark_lost("b", 1));
  CHECK(membership.leave("c", std::nullopt).has_value());
  join(membership, worker("d", 2));
  memory.keep_only(membership);
  CHECK(memory.size() == 1);
  CHECK(memory.find(end_of(worker("a")), end_of(worker("b"))).has_value());
}
