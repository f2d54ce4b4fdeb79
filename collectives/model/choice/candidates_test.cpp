#include "collectives/model/choice/candidates.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "collectives/core/errc.hpp"
#include "collectives/model/model_for_tests.hpp"

using namespace chorus;
using namespace chorus::model;
using plan::Shape, plan::Spec;

namespace {

std::vector<Shape> shapes(std::string const& topology) {
  auto const localities = places(topology);
  return shapes_of(Network(localities, Constants::defaults()));
}

bool has(std::vector<Shape> const& shapes, Shape const& shape) {
  return std::find(shapes.begin(), shapes.end(), shape) != shapes.end();
}

std::vector<Spec> specs(Wish const& wish, plan::Algorithm const& algorithm, std::string const& topology) {
  auto const localities = places(topology);
  Network const network(localities, Constants::defaults());
  return Candidates(wish, network).of(algorithm);
}

std::string refusal(Wish const& wish, plan::Algorithm const& algorithm, std::string const& topology = "flat:6") {
  auto const localities = places(topology);
  Network const network(localities, Constants::defaults());
  Candidates const candidates(wish, network);
  CHECK(candidates.of(algorithm).empty());
  return candidates.refusal(algorithm).detail;
}

}  // namespace

TEST_CASE("shapes_of returns sizes and extents of hosts, racks and zones") {
  CHECK(shapes("flat:8").empty());
  CHECK(shapes("hosts:1x8").empty());
  CHECK(has(shapes("hosts:2x4"), {4, 4}));
  CHECK(has(shapes("hosts:2x4"), {2, 4}));
  auto const nest = shapes("racks:2x3x4");
  CHECK(has(nest, {4, 4, 4, 4, 4, 4}));
  CHECK(has(nest, {12, 12}));
  CHECK(has(nest, {6, 4}));
  CHECK(has(nest, {2, 12}));
  CHECK(has(nest, {2, 3, 4}));
}

TEST_CASE("uneven hosts give sizes and no extents; scattered hosts give neither") {
  std::vector<Locality> const uneven{
      {"", "", "", "a"}, {"", "", "", "a"}, {"", "", "", "a"}, {"", "", "", "b"}, {"", "", "", "b"}};
  auto const found = shapes_of(Network(uneven, Constants::defaults()));
  CHECK(has(found, {3, 2}));
  CHECK(std::none_of(found.begin(), found.end(), [](auto const& shape) { return shape == Shape{2, 3}; }));
  std::vector<Locality> const scattered{uneven[0], uneven[3], uneven[1], uneven[4]};
  CHECK_FALSE(has(shapes_of(Network(scattered, Constants::defaults())), {2, 2}));
}

TEST_CASE("shapes_of returns trees over the best links only for few ranks on different links") {
  auto const trees_of = [](std::string const& topology) {
    auto const found = shapes(topology);
    auto const ranks = places(topology).size();
    return std::count_if(found.begin(), found.end(), [&](Shape const& shape) {
      return shape.size() % ranks == 0 &&
             algorithms::multi_tree
                 .check({.algorithm = "multi_tree", .ranks = static_cast<std::uint32_t>(ranks), .shape = shape})
                 .has_value();
    });
  };
  CHECK(trees_of("hosts:2x4") == 1);
  CHECK(trees_of("flat:8") == 0);
  CHECK(trees_of("hosts:4x8") == 0);
}

TEST_CASE("the candidates of an algorithm have the shapes that it accepts") {
  auto const hierarchical = specs({}, algorithms::hierarchical, "hosts:2x4");
  CHECK(std::any_of(hierarchical.begin(), hierarchical.end(), [](auto const& spec) {
    return spec.shape == Shape{4, 4};
  }));
  CHECK(std::none_of(hierarchical.begin(), hierarchical.end(), [](auto const& spec) {
    return spec.shape == Shape{2, 4};
  }));
  auto const torus = specs({}, algorithms::torus_2d, "hosts:2x4");
  CHECK(std::any_of(torus.begin(), torus.end(), [](auto const& spec) { return spec.shape == Shape{2, 4}; }));
  CHECK(specs({}, algorithms::ring, "hosts:2x4").size() == 1);
  auto const fixed = specs({.algorithm = "torus_2d", .shape = Shape{4, 2}}, algorithms::torus_2d, "hosts:2x4");
  REQUIRE(fixed.size() == 1);
  CHECK(fixed[0].shape == Shape{4, 2});
}

TEST_CASE("no two candidates of an algorithm have the same spec") {
  for (auto const op : all_ops)
    for (auto const* algorithm : algorithms::all_for(op)) {
      auto all = specs({.op = op, .algorithm = std::string(algorithm->name)}, *algorithm, "racks:2x2x4");
      CHECK_FALSE(all.empty());
      std::sort(all.begin(), all.end());
      CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
      for (auto const& spec : all) CHECK(algorithm->check(spec).has_value());
    }
}

TEST_CASE(
    "codes between racks have the racks' sizes, those between hosts the hosts', and inside one rack there are none") {
  auto const between = [](Level level) { return Wish{.compression = Compression(WireFormat::int8, level)}; };
  auto const racks = specs(between(Level::rack), algorithms::grouped_allpairs, "racks:2x2x4");
  REQUIRE(racks.size() == 1);
  CHECK(racks[0].shape == Shape{8, 8});
  auto const hosts = specs(between(Level::host), algorithms::grouped_allpairs, "racks:2x2x4");
  REQUIRE(hosts.size() == 1);
  CHECK(hosts[0].shape == Shape{4, 4, 4, 4});
  CHECK(specs(between(Level::rack), algorithms::ring, "racks:2x2x4").empty());
  CHECK(specs(between(Level::rack), algorithms::grouped_allpairs, "hosts:2x4").empty());
  CHECK(specs(between(Level::rack), algorithms::ring, "hosts:2x4").size() == 1);
  CHECK(specs({}, algorithms::grouped_allpairs, "racks:2x2x4").empty());
}

TEST_CASE("trees that would be the same star are one candidate") {
  CHECK(specs({}, algorithms::tree, "flat:1").size() == 1);
  CHECK(specs({}, algorithms::tree, "flat:3").size() == 1);
  CHECK(specs({}, algorithms::tree, "flat:4").size() == 2);
  CHECK(specs({}, algorithms::tree, "flat:64").size() == 3);
  CHECK(specs({.arity = 3}, algorithms::tree, "flat:64").size() == 1);
}

TEST_CASE("the refusal of an impossible wish names possible ones") {
  CHECK(refusal({.op = Op::gather, .algorithm = "ring"}, algorithms::ring) ==
        "ring does not do gather; centralized, tree, binomial, chain do");
  CHECK(refusal({.algorithm = "torus_2d", .shape = Shape{4, 2}}, algorithms::torus_2d).find("2,3") !=
        std::string::npos);
  auto const reproducible = refusal({.algorithm = "ring", .reproducible = true}, algorithms::ring);
  CHECK(reproducible.starts_with("ring does not reduce in worker order; mesh, centralized"));
  auto const uneven = refusal({.op = Op::all_to_all, .algorithm = "bruck", .uneven = true}, algorithms::bruck);
  CHECK(uneven == "bruck needs blocks of equal size; with others pairwise, direct do");
  Wish between_racks{.algorithm = "ring", .compression = Compression(WireFormat::int8, Level::rack)};
  CHECK(refusal(between_racks, algorithms::ring, "racks:2x2x4") ==
        "ring sends no codes between groups; grouped_allpairs does");
  between_racks.op = Op::reduce;
  CHECK(refusal(between_racks, algorithms::tree, "racks:2x2x4").ends_with("; none does"));
  CHECK(refusal({.algorithm = "bcube", .arity = 1}, algorithms::bcube).find("expected at least 2") !=
        std::string::npos);
}
