#include "collectives/topology/orders/stretch.hpp"

#include <doctest/doctest.h>

#include "collectives/core/errc.hpp"
#include "collectives/topology/dgx1.hpp"
#include "collectives/topology/orders/ring_order.hpp"
#include "collectives/topology/underlay.hpp"

using namespace chorus;
using namespace chorus::topology;

namespace {

using Order = std::vector<std::uint32_t>;

enum Host : std::uint32_t { a, b, c, d };  // as in the textbook; the routers are nodes 4 to 9

// Four hosts and six routers on a loop of ten links: a - c, two links; c - b, three; b - d, two; d - a, three. In its
// first numbering the links from c to d and from b to a travel far, as in the textbook's picture.
Underlay const underlay{10, {{a, 4}, {4, c}, {c, 5}, {5, 6}, {6, b}, {b, 7}, {7, d}, {d, 8}, {8, 9}, {9, a}}};
Order const hosts{a, b, c, d};

std::string complaint(Underlay const& network, Order const& workers) {
  auto const counts = hop_counts(network, workers);
  CHECK(counts.error().code == PlanErrc::bad_parameter);
  return counts.error().detail;
}

}  // namespace

TEST_CASE("the distances of the underlay are those of shortest paths") {
  auto const distance = hop_counts(underlay, hosts).value();
  CHECK(distance.at(a, c) == 2);
  CHECK(distance.at(b, d) == 2);
  CHECK(distance.at(c, b) == 3);
  CHECK(distance.at(d, a) == 3);
  CHECK(distance.at(c, d) == 5);
  CHECK(distance.at(b, a) == 5);
  CHECK(distance.at(a, a) == 0);
}

TEST_CASE("a bad numbering has an average stretch of 3.5, ours of 2.5") {
  auto const distance = hop_counts(underlay, hosts).value();
  Order const bad{a, c, d, b};  // c to d and b to a are long
  CHECK(average_stretch(distance, bad, 1) == 3.5);
  auto const ours = ring_order(distance, bad);
  CHECK(average_stretch(distance, ours.order, 1) == 2.5);
  CHECK(ours.order.front() == a);
  CHECK(ours.exact);
}

TEST_CASE("over costs, a ring of links as cheap as the cheapest has stretch 1") {
  auto const seconds = dgx1_matrix().hop_seconds(1e6);
  auto const unit = least_hop(seconds);
  CHECK(unit == Link{0.6e-6, 50}.seconds(1e6));
  Order const by_number{0, 1, 2, 3, 4, 5, 6, 7};
  CHECK(average_stretch(seconds, by_number, unit) > 1.5);
  CHECK(average_stretch(seconds, ring_order(seconds, by_number).order, unit) == doctest::Approx(1).epsilon(1e-12));
}

TEST_CASE("a ring of one has no stretch") {
  CHECK(average_stretch(SquareMatrix(1), Order{0}, 1) == 0);
  CHECK(least_hop(SquareMatrix(1)) == 0);
}

TEST_CASE("an underlay that is not connected is refused") {
  CHECK(complaint({3, {{0, 1}}}, {0, 2}) ==
        "no path between workers 0 and 1 in the underlay; expected a connected network");
  CHECK(complaint({3, {{0, 3}}}, {0, 1}) == "link 0 names node 3, but the underlay has 3 nodes, numbered from 0");
  CHECK(complaint({3, {{0, 1}}}, {0, 7}) == "worker 1 names node 7, but the underlay has 3 nodes, numbered from 0");
  CHECK(complaint({3, {{0, 1}}}, {1, 1}) == "workers 0 and 1 are both node 1; expected every worker once");
  CHECK(complaint({3, {{0, 1}}}, {}).starts_with("0 workers"));
  CHECK(complaint({0xffffffff, {}}, {0}).starts_with("an underlay of 4294967295 nodes"));
}
