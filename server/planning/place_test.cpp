// Effects of links in a request, and refused links.
#include "server/planning/place.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "collectives/topology/dgx1.hpp"
#include "server/planning/explain.hpp"
#include "server/planning/simulations.hpp"
#include "tests/support/mentions.hpp"

using namespace chorus;
using namespace chorus::planning;
using chorus::testing::mentions;

namespace {

auto const constants = model::Constants::defaults();

api::LinkMatrix as_given(topology::LinkMatrix const& matrix) {
  api::LinkMatrix given;
  for (std::uint32_t from = 0; from < matrix.size(); ++from) {
    auto& bandwidth = given.bandwidth_gbyte_per_s.emplace_back(matrix.size());
    auto& latency = given.latency_us.emplace_back(matrix.size());
    for (std::uint32_t to = 0; to < matrix.size(); ++to) {
      if (from == to) continue;
      bandwidth[to] = matrix.link(from, to).bandwidth_gbyte_per_s;
      latency[to] = matrix.link(from, to).latency_s * 1e6;
    }
  }
  return given;
}

// Links of so many workers, all with `gbyte_per_s`.
api::LinkMatrix even(std::size_t workers, double gbyte_per_s = 10) {
  api::LinkMatrix given;
  given.bandwidth_gbyte_per_s.assign(workers, std::vector<std::optional<double>>(workers, gbyte_per_s));
  given.latency_us.assign(workers, std::vector<std::optional<double>>(workers, 5));
  for (std::size_t i = 0; i < workers; ++i) given.bandwidth_gbyte_per_s[i][i] = given.latency_us[i][i] = std::nullopt;
  return given;
}

api::PlanRequest request_over(api::LinkMatrix links) {
  api::PlanRequest request;
  request.links = std::move(links);
  request.bytes = 1 << 26;
  return request;
}

Place place_over(api::LinkMatrix links) { return place_of(request_over(std::move(links)), constants, 1024).value(); }

api::PlanAnswer planned(api::PlanRequest const& request, model::Wish wish) {
  auto const place = place_of(request, constants, 1024).value();
  return plan_in(place, std::move(wish), {{request.bytes / 4, {}, {}}, Dtype::f32}, {}, 64).value();
}

// Returns pointer and text of the refusal of even(3) with one change.
http::FieldError refused(auto change) {
  auto request = request_over(even(3));
  change(*request.links);
  auto const problem = place_of(request, constants, 1024).error();
  CHECK(problem.code == http::ProblemCode::invalid_field);
  REQUIRE(problem.errors.size() == 1);
  CHECK(problem.errors[0].detail == problem.detail);
  return problem.errors[0];
}

}  // namespace

TEST_CASE("over the links of a p3.16xlarge the ranks form the ring of the 50 GB/s links") {
  auto const place = place_over(as_given(topology::dgx1_matrix()));
  auto const& [order, stretch] = *place.ordered;
  CHECK(order == std::vector<std::uint32_t>{0, 4, 7, 6, 5, 1, 2, 3});  // the only such ring
  for (std::uint32_t rank = 0; rank < 8; ++rank)
    CHECK(place.links->link(rank, (rank + 1) % 8).bandwidth_gbyte_per_s == 50);
  CHECK(stretch.assigned == doctest::Approx(1));
  CHECK(stretch.arrival_order > 2);
}

TEST_CASE("messages cost what their links cost: the ring of the fast links is faster than the listed order") {
  auto const given = topology::dgx1_matrix();
  auto const place = place_over(as_given(given));
  auto const as_listed = Place{place.shape, place.constants, given, LinkOrder{{0, 1, 2, 3, 4, 5, 6, 7}, {}}};
  auto const seconds = [](Place const& of) {
    return plan_in(of, {.algorithm = "ring"}, {{1 << 24, {}, {}}, Dtype::f32}, {}, 0).value().predicted_seconds;
  };
  CHECK(seconds(place) < 0.7 * seconds(as_listed));
}

TEST_CASE("trees and the root of a dry run over links follow these links") {
  auto links = even(6, 1);
  // Worker 4 is close to all others.
  for (std::size_t i = 0; i < 6; ++i)
    if (i != 4) links.bandwidth_gbyte_per_s[4][i] = links.bandwidth_gbyte_per_s[i][4] = 100;
  auto const request = request_over(links);
  auto const star = planned(request, {.algorithm = "centralized"});
  REQUIRE(star.order.has_value());
  CHECK(star.order->at(star.root) == 4);
  auto const nvlinks = place_over(as_given(topology::dgx1_matrix()));
  auto const trees = model::shapes_of(nvlinks.network()).back();
  REQUIRE(trees.size() == 4 * 8);  // the parents in four trees
  for (std::uint32_t rank = 0; rank < 4 * 8; ++rank)
    if (trees[rank] != rank % 8) CHECK(nvlinks.links->link(rank % 8, trees[rank]).bandwidth_gbyte_per_s >= 25);
  CHECK(planned(request_over(as_given(topology::dgx1_matrix())), {.algorithm = "multi_tree", .shape = trees}).verified);
}

TEST_CASE("a requested root is the worker of that row, whatever its rank") {
  auto const request = request_over(as_given(topology::dgx1_matrix()));
  auto const answer = planned(request, {.op = Op::broadcast, .root = 3});
  CHECK(answer.root == 7);
  CHECK(answer.order->at(answer.root) == 3);
}

TEST_CASE("links that are missing, impossible or ragged are refused with their position and the possible values") {
  using L = api::LinkMatrix;
  auto const missing = refused([](L& l) { l.bandwidth_gbyte_per_s[0][2] = std::nullopt; });
  CHECK(missing.pointer == "/links/bandwidth_gbyte_per_s/0/2");
  CHECK(mentions(missing.detail, "bandwidth of link (0, 2) is missing; expected 1e-9 to 1e6 GB/s"));
  auto const late = refused([](L& l) { l.latency_us[2][1] = std::nullopt; });
  CHECK(late.pointer == "/links/latency_us/2/1");
  CHECK(mentions(late.detail, "expected 0 to 3.6e9 us"));
  for (auto const value : {-1.0, 0.0, 1e7, std::numeric_limits<double>::quiet_NaN()}) {
    auto const impossible = refused([&](L& l) { l.bandwidth_gbyte_per_s[1][0] = value; });
    CHECK(impossible.pointer == "/links/bandwidth_gbyte_per_s/1/0");
    CHECK(mentions(impossible.detail, "link (1, 0): bandwidth "));
    CHECK(mentions(impossible.detail, "; expected "));
  }
  CHECK(refused([](L& l) { l.latency_us[1][2] = -1; }).pointer == "/links/latency_us/1/2");
  CHECK(refused([](L& l) { l.latency_us[1][2] = 1e10; }).pointer == "/links/latency_us/1/2");
  auto const ragged = refused([](L& l) { l.bandwidth_gbyte_per_s[1].pop_back(); });
  CHECK(ragged.pointer == "/links/bandwidth_gbyte_per_s/1");
  CHECK(mentions(ragged.detail, "row 1 of the bandwidth matrix has 2 entries; expected 3 x 3"));
  CHECK(refused([](L& l) { l.latency_us.pop_back(); }).pointer == "/links/latency_us");
  CHECK(refused([](L& l) { l.bandwidth_gbyte_per_s.clear(); }).pointer == "/links/bandwidth_gbyte_per_s");
}

TEST_CASE("a matrix has as many rows as there are ranks, up to its limit") {
  auto request = request_over(even(3));
  request.ranks = 4;
  CHECK(place_of(request, constants, 1024).error().errors.at(0).pointer == "/links/bandwidth_gbyte_per_s");
  request.ranks = 3;
  request.localities = {{"host=a", "host=a", "host=b", "host=b"}};
  CHECK(place_of(request, constants, 1024).error().errors.at(0).pointer == "/localities");
  request.ranks.reset();
  auto const places = place_of(request, constants, 1024).error();
  CHECK(places.errors.at(0).pointer == "/links/bandwidth_gbyte_per_s");
  CHECK(mentions(places.detail, "expected 4 x 4"));
  auto const many = request_over(even(topology::max_matrix_workers + 1));
  CHECK(mentions(place_of(many, constants, plan::max_ranks).error().detail, "expected 1 to 2048"));
}

TEST_CASE("one worker has no links, and the diagonal is not read") {
  auto alone = place_over(even(1));
  CHECK(alone.ordered->order == std::vector<std::uint32_t>{0});
  auto links = even(3);
  links.bandwidth_gbyte_per_s[1][1] = -1;
  CHECK(place_over(links).ordered->order.size() == 3);
}

TEST_CASE("localities follow the ranks that links order, and a host's card is as fast as its fastest link") {
  auto links = even(4, 10);
  links.bandwidth_gbyte_per_s[0][3] = links.bandwidth_gbyte_per_s[3][0] = 40;
  links.bandwidth_gbyte_per_s[1][2] = links.bandwidth_gbyte_per_s[2][1] = 40;
  auto request = request_over(links);
  request.localities = {{"host=a", "host=b", "host=b", "host=a"}};
  auto const place = place_of(request, constants, 1024).value();
  for (std::uint32_t rank = 0; rank < 4; ++rank)
    CHECK(place.shape.localities[rank] ==
          (place.ordered->order[rank] % 3 == 0 ? Locality{.host = "a"} : Locality{.host = "b"}));
  CHECK(place.constants.uplink_s_per_byte[0] == doctest::Approx(1e-10));
  request.localities.reset();
  request.topology = "hosts:2x2;uplink_host=1GB/s";
  CHECK(place_of(request, constants, 1024).value().constants.uplink_s_per_byte[0] == doctest::Approx(1e-9));
}

TEST_CASE("simulations use the given links, in the order of the ring") {
  api::SimulationRequest request;
  request.links = as_given(topology::dgx1_matrix());
  request.bytes = 1 << 26;
  request.algorithm = "ring";
  auto const answer = simulate(request, constants).value();
  CHECK(answer.ranks == 8);
  CHECK(answer.topology == "flat:8 with given links");
  CHECK(answer.order == std::vector<std::uint32_t>{0, 4, 7, 6, 5, 1, 2, 3});
  // Segments of 8 MiB chunks at 50 GB/s, and in half of the rounds a reduction: a 64th at 50 GB/s, the rest at 8 GB/s.
  auto const gamma_s_per_byte = (1 / 50e9 + 63 / 8e9) / 64;
  auto const least = 14 * (double{1 << 23} / 50e9) + 7 * double{1 << 23} * gamma_s_per_byte;
  CHECK(answer.items.at(0).seconds > least);
  CHECK(answer.items.at(0).seconds < 1.1 * least);
  request.ranks = 9;
  CHECK(simulate(request, constants).error().errors.at(0).pointer == "/ranks");
  request.ranks.reset();
  request.links->latency_us[3][4] = std::nullopt;
  CHECK(simulate(request, constants).error().errors.at(0).pointer == "/links/latency_us/3/4");
}
