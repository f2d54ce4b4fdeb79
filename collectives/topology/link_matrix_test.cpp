#include "collectives/topology/link_matrix.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "collectives/core/errc.hpp"
#include "collectives/topology/dgx1.hpp"

using namespace chorus;
using namespace chorus::topology;

namespace {

LinkMatrix::Rows rows(std::uint32_t size, double value) { return LinkMatrix::Rows(size, std::vector(size, value)); }

LinkMatrix matrix(std::uint32_t size) { return LinkMatrix::make(rows(size, 8), rows(size, 1e-5)).value(); }

// The error for a matrix of 4 workers in which one value was replaced.
std::string with_bandwidth(double value) {
  auto bandwidth = rows(4, 8);
  bandwidth[1][3] = value;
  return LinkMatrix::make(bandwidth, rows(4, 1e-5)).error().detail;
}
std::string with_latency(double value) {
  auto latency = rows(4, 1e-5);
  latency[2][0] = value;
  return LinkMatrix::make(rows(4, 8), latency).error().detail;
}

constexpr auto nan = std::numeric_limits<double>::quiet_NaN();
constexpr auto infinity = std::numeric_limits<double>::infinity();

LevelLinks const levels{{{1e-6, 16}, {1e-5, 8}, {1e-4, 4}, {1e-3, 2}, {1e-2, 1}}};

}  // namespace

TEST_CASE("a hop costs its latency and its bytes over the bandwidth") {
  CHECK(Link{1, 4}.seconds(8e9) == 3);
  auto const seconds = LinkMatrix::make({{0, 2}, {4, 0}}, {{0, 1}, {0.5, 0}}).value().hop_seconds(8e9);
  CHECK(seconds.at(0, 1) == 5);
  CHECK(seconds.at(1, 0) == 2.5);
  CHECK(seconds.at(0, 0) == 0);
}

TEST_CASE("both ways is the worse of both directions") {
  auto const links = LinkMatrix::make({{0, 2}, {4, 0}}, {{0, 1}, {3, 0}}).value();
  CHECK(links.both_ways(0, 1) == Link{3, 2});
  CHECK(links.both_ways(1, 0) == Link{3, 2});
}

TEST_CASE("an impossible link is named with its value and what is expected") {
  CHECK(with_bandwidth(0) == "link (1, 3): bandwidth 0 GB/s; expected 1e-09 to 1e+06 GB/s");
  CHECK(with_bandwidth(-3.5) == "link (1, 3): bandwidth -3.5 GB/s; expected 1e-09 to 1e+06 GB/s");
  CHECK(with_bandwidth(nan) == "link (1, 3): bandwidth nan GB/s; expected 1e-09 to 1e+06 GB/s");
  CHECK(with_bandwidth(infinity) == "link (1, 3): bandwidth inf GB/s; expected 1e-09 to 1e+06 GB/s");
  CHECK(with_latency(-1e-6) == "link (2, 0): latency -1e-06 s; expected 0 to 3600 s");
  CHECK(with_latency(nan) == "link (2, 0): latency nan s; expected 0 to 3600 s");
  CHECK(with_latency(infinity) == "link (2, 0): latency inf s; expected 0 to 3600 s");
}

TEST_CASE("the diagonal is not read") {
  auto bandwidth = rows(2, 8);
  bandwidth[0][0] = nan;
  bandwidth[1][1] = -1;
  CHECK(LinkMatrix::make(bandwidth, rows(2, 1e-5)).value() == matrix(2));
}

TEST_CASE("a matrix that is not square, empty or too large is refused") {
  auto ragged = rows(3, 8);
  ragged[2].pop_back();
  CHECK(LinkMatrix::make(ragged, rows(3, 0)).error().detail ==
        "row 2 of the bandwidth matrix has 2 entries; expected a square matrix of 3 x 3");
  CHECK(LinkMatrix::make(rows(3, 8), ragged).error().detail ==
        "row 2 of the latency matrix has 2 entries; expected a square matrix of 3 x 3");
  CHECK(LinkMatrix::make(rows(3, 8), rows(4, 0)).error().detail ==
        "the latency matrix has 4 rows; expected a square matrix of 3 x 3");
  CHECK(LinkMatrix::make({}, {}).error().detail == "a link matrix of 0 workers; expected 1 to 2048");
  CHECK(LinkMatrix::make(LinkMatrix::Rows(2049), {}).error().code == PlanErrc::bad_parameter);
  CHECK(LinkMatrix::make(rows(1, 0), rows(1, 0)).value().size() == 1);
}

TEST_CASE("localities give each pair the link of the innermost level that it shares") {
  std::vector<Locality> const workers{
      {"eu", "z", "r", "h"}, {"eu", "z", "r", "h"}, {"eu", "z", "r", "i"},
      {"eu", "z", "s", "h"}, {"eu", "y", "r", "h"}, {"us", "z", "r", "h"},
  };
  auto const links = LinkMatrix::from_localities(workers, levels).value();
  for (std::uint32_t i = 0; i < workers.size(); ++i)
    for (std::uint32_t j = 0; j < workers.size(); ++j)
      if (i != j) CHECK(links.link(i, j) == levels[static_cast<std::size_t>(shared_level(workers[i], workers[j]))]);
  CHECK(links.link(0, 5) == Link{1e-2, 1});
}

TEST_CASE("a level whose link is impossible is named") {
  auto bad = levels;
  bad[static_cast<std::size_t>(Level::zone)].bandwidth_gbyte_per_s = 0;
  CHECK(LinkMatrix::from_localities(std::vector<Locality>(2), bad).error().detail ==
        "link of level zone: bandwidth 0 GB/s; expected 1e-09 to 1e+06 GB/s");
  CHECK(LinkMatrix::from_localities({}, levels).error().code == PlanErrc::bad_parameter);
}

TEST_CASE("a measurement refines one direction of one link") {
  auto links = matrix(3);
  REQUIRE(links.refine(0, 2, {3e-5, 4}).has_value());
  CHECK(links.link(0, 2) == Link{3e-5, 4});
  CHECK(links.link(2, 0) == Link{1e-5, 8});
}

TEST_CASE("a smoothed measurement averages the cost of hops of any size") {
  auto links = LinkMatrix::make(rows(2, 4), rows(2, 1)).value();
  REQUIRE(links.refine(0, 1, {5, 1}, 0.25).has_value());
  for (double const bytes : {0.0, 1e9, 8e9})
    CHECK(links.link(0, 1).seconds(bytes) == 0.75 * Link{1, 4}.seconds(bytes) + 0.25 * Link{5, 1}.seconds(bytes));
}

TEST_CASE("an impossible measurement changes nothing") {
  auto links = matrix(3);
  CHECK(links.refine(0, 3, {1e-5, 8}).error().code == PlanErrc::rank_out_of_range);
  CHECK(links.refine(0, 3, {1e-5, 8}).error().detail == "link (0, 3): worker 3 is not one of 0 to 2");
  CHECK(links.refine(1, 1, {1e-5, 8}).error().code == PlanErrc::bad_parameter);
  CHECK(links.refine(0, 1, {1e-5, nan}).error().code == PlanErrc::bad_parameter);
  CHECK(links.refine(0, 1, {-1, 8}).error().code == PlanErrc::bad_parameter);
  for (auto const weight : {-0.1, 1.1, nan})
    CHECK(links.refine(0, 1, {1e-5, 4}, weight).error().code == PlanErrc::bad_parameter);
  CHECK(links == matrix(3));
}

TEST_CASE("each GPU of the p3.16xlarge has six NVLinks, and the matrix is symmetric") {
  auto const links = dgx1_matrix();
  for (std::uint32_t i = 0; i < 8; ++i) {
    auto nvlinks = 0.0;
    for (std::uint32_t j = 0; j < 8; ++j) {
      if (i == j) continue;
      CHECK(links.link(i, j) == links.link(j, i));
      if (links.link(i, j).bandwidth_gbyte_per_s > 10) nvlinks += links.link(i, j).bandwidth_gbyte_per_s / 25;
    }
    CHECK(nvlinks == 6);
  }
}
