#include "server/planning/simulations.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "collectives/algorithms/catalogue.hpp"
#include "tests/support/mentions.hpp"

using namespace chorus;
using namespace chorus::planning;
using chorus::testing::mentions;

namespace {

api::SimulationRequest request_for(std::string topology) {
  api::SimulationRequest request;
  request.topology = std::move(topology);
  request.bytes = 1 << 20;
  return request;
}

api::SimulationAnswer answer(api::SimulationRequest const& request) {
  return simulate(request, model::Constants::defaults()).value();
}

http::FieldError refused(api::SimulationRequest const& request, std::uint64_t rounds_max = requested_rounds_max) {
  auto const problem = simulate(request, model::Constants::defaults(), rounds_max).error();
  CHECK(problem.code == http::ProblemCode::invalid_field);
  REQUIRE(problem.errors.size() == 1);
  CHECK(problem.errors[0].detail == problem.detail);
  return problem.errors[0];
}

}  // namespace

TEST_CASE("every algorithm that can do the operation is simulated once, the fastest first") {
  for (auto const op : all_ops) {
    auto request = request_for("hosts:2x4");
    request.op = name(op);
    auto const simulated = answer(request);
    CHECK(simulated.op == name(op));
    CHECK(simulated.ranks == 8);
    // Without a compression those that send codes are not considered.
    auto const has_no_codes = [](auto const* algorithm) { return algorithm->coded_from == nullptr; };
    CHECK(std::ssize(simulated.items) == std::ranges::count_if(algorithms::all_for(op), has_no_codes));
    for (std::size_t i = 0; i < simulated.items.size(); ++i) {
      CHECK(simulated.items[i].seconds > 0);
      CHECK(simulated.items[i].rounds > 0);
      CHECK_FALSE(simulated.items[i].bottleneck.empty());
      if (i > 0) CHECK(simulated.items[i - 1].seconds <= simulated.items[i].seconds);
    }
    request.algorithm = "all";
    CHECK(answer(request).items.size() == simulated.items.size());
  }
}

TEST_CASE("a named algorithm is simulated alone, with the fixed choices of the request") {
  auto request = request_for("flat:8");
  request.algorithm = "ring";
  auto const ring = answer(request);
  REQUIRE(ring.items.size() == 1);
  CHECK(ring.items[0].rounds == 14);
  CHECK(ring.items[0].bytes_per_rank == ring.lower_bound.bytes_per_rank);
  request.algorithm = "tree";
  request.arity = 7;
  request.root = 3;
  auto const star = answer(request).items.at(0);
  CHECK(star.arity == 7);
  CHECK(star.root == 3);
  CHECK(star.bottleneck == "port of rank 3 (receive)");
  request.algorithm = "torus_2d";
  request.root.reset();
  request.arity.reset();
  request.algorithm_shape = {{4, 2}};
  CHECK(answer(request).items.at(0).algorithm_shape == std::vector<std::uint32_t>{4, 2});
}

TEST_CASE("ranks without a topology are hosts of one worker, and overrides apply wherever they are written") {
  api::SimulationRequest plain;
  plain.ranks = 4;
  plain.bytes = 64 << 20;
  plain.algorithm = "ring";
  CHECK(answer(plain).topology == "flat:4");
  auto slow = plain;
  slow.overrides = "rack=25us,1Gbit/s";
  CHECK(answer(slow).topology == "flat:4;rack=25us,1Gbit/s");
  CHECK(answer(slow).items[0].seconds > 10 * answer(plain).items[0].seconds);
  auto same = request_for("flat:4;rack=25us,1Gbit/s");
  same.bytes = plain.bytes;
  same.algorithm = "ring";
  CHECK(answer(same).items[0].seconds == answer(slow).items[0].seconds);
  same.ranks = 4;
  CHECK(answer(same).ranks == 4);
}

TEST_CASE("a simulation of codes between groups that no algorithm sends is refused at the compression") {
  auto request = request_for("racks:2x2x1");
  request.compression = api::Compression{"int8", "rack"};
  request.op = "broadcast";
  CHECK(refused(request).pointer == "/compression");
  request.op = "all_reduce";
  request.algorithm = "ring";
  CHECK(refused(request).pointer == "/algorithm");
}

TEST_CASE("an impossible simulation is refused at its field, with the possible values") {
  CHECK(refused({}).pointer == "/ranks");
  auto request = request_for("hosts:2y4");
  CHECK(refused(request).pointer == "/topology");
  CHECK(mentions(refused(request).detail, "hosts:HxW"));
  request = request_for("hosts:2x4");
  request.ranks = 9;
  CHECK(refused(request).pointer == "/ranks");
  request.ranks.reset();
  request.overrides = "rack=fast";
  CHECK(refused(request).pointer == "/topology");
  request.overrides.reset();
  request.op = "all_reduced";
  CHECK(mentions(refused(request).detail, "all_reduce"));
  request.op = "gather";
  request.algorithm = "ring";
  CHECK(refused(request).pointer == "/algorithm");
  CHECK(mentions(refused(request).detail, "binomial"));
  request.algorithm = "rign";
  CHECK(mentions(refused(request).detail, "ring"));
  request.algorithm = "auto";
  request.root = 8;
  CHECK(refused(request).pointer == "/root");
  request.root.reset();
  request.algorithm_shape = {{2, 4}};
  CHECK(refused(request).pointer == "/algorithm_shape");
  request.op = "all_reduce";
  request.algorithm = "torus_2d";
  request.algorithm_shape = {{3, 3}};
  CHECK(refused(request).pointer == "/algorithm_shape");
  CHECK(mentions(refused(request).detail, "product is 8"));
  request.algorithm_shape.reset();
  request.arity = 0;
  CHECK(refused(request).pointer == "/arity");
  request.arity = 1;
  request.algorithm = "bcube";
  CHECK(refused(request).pointer == "/arity");
  request.arity.reset();
  request.algorithm = "auto";
  request.bytes = 3;
  CHECK(refused(request).pointer == "/bytes");
  request.dtype = "f31";
  CHECK(refused(request).pointer == "/dtype");
  request = request_for("flat:8");
  request.algorithm = "ring";
  request.reproducible = true;
  CHECK(mentions(refused(request).detail, "centralized"));
}

TEST_CASE("a simulation that would take too long for a request is refused, with the limit") {
  auto request = request_for("flat:16384");
  request.algorithm = "ring";
  CHECK(refused(request).pointer == "/ranks");
  request.algorithm = "halving_doubling";
  CHECK(answer(request).items.at(0).rounds == 28);
  request = request_for("flat:1024");
  request.algorithm = "multi_tree";
  auto& parents = request.algorithm_shape.emplace();  // of 64 heaps
  for (std::uint32_t rank = 0; rank < 64 * 1024; ++rank)
    parents.push_back(rank % 1024 == 0 ? 0 : (rank % 1024 - 1) / 2);
  CHECK(refused(request).pointer == "/ranks");
  // Few rounds, whose instructions grow with the ranks.
  for (auto const& [op, algorithm] : {std::pair("all_to_all", "bruck"), std::pair("all_reduce", "grouped_allpairs")}) {
    request = request_for("flat:16384");
    request.op = op;
    request.algorithm = algorithm;
    CHECK(refused(request).pointer == "/ranks");
    request.topology = "flat:512";
    CHECK(answer(request).items.size() == 1);
  }
  request = request_for("flat:64");
  CHECK(mentions(refused(request, 1000).detail, "expected up to 1000"));
}

TEST_CASE("large groups take the variant with the least folded cost, which is nearly the best") {
  auto request = request_for("hosts:16x8");
  request.algorithm = "hierarchical";
  request.bytes = 64 << 10;
  auto const chosen = answer(request).items.at(0);
  for (std::uint32_t const arity : {2u, 7u}) {
    request.arity = arity;
    request.algorithm_shape = std::vector<std::uint32_t>(16, 8);
    CHECK(chosen.seconds < 1.3 * answer(request).items.at(0).seconds);
  }
}

TEST_CASE("with a compression, plans send its codes: fewer bytes, encoded and decoded, and less time on slow links") {
  auto request = request_for("flat:4;rack=1ms,100Mbit/s");
  auto const elements = answer(request);
  request.compression = api::Compression{"int8", std::nullopt};
  auto const codes = answer(request);
  CHECK(codes.items.front().seconds < 0.4 * elements.items.front().seconds);
  for (auto const& plan : codes.items) {
    CHECK(plan.wire_bytes == ((1 << 18) + 251) / 252 * 256);  // a block has 252 codes and a scale
    auto const same = std::ranges::find(elements.items, plan.algorithm, &api::SimulatedPlan::algorithm);
    REQUIRE(same != elements.items.end());
    CHECK_FALSE(same->wire_bytes);
    CHECK(plan.bytes_per_rank < 0.3 * static_cast<double>(same->bytes_per_rank));
  }
}

TEST_CASE("with a compression between racks, only the plan that sends codes there does") {
  auto request = request_for("racks:2x2x1");
  request.compression = api::Compression{"bf16", "rack"};
  std::vector<std::string> senders;
  for (auto const& plan : answer(request).items)
    if (plan.wire_bytes) senders.push_back(plan.algorithm);
  CHECK(senders == std::vector<std::string>{"grouped_allpairs"});
}

TEST_CASE("a compression that cannot be simulated is refused") {
  auto const why_not = [](char const* op, char const* dtype, api::Compression const& compression) {
    auto request = request_for("flat:4");
    request.op = op;
    request.dtype = dtype;
    request.compression = compression;
    auto const error = refused(request);
    CHECK(error.pointer == "/compression");
    return error.detail;
  };
  CHECK(mentions(why_not("all_reduce", "i32", {"int8", std::nullopt}), "all_reduce of i32 has no compression 'int8'"));
  CHECK(mentions(why_not("all_to_all", "f32", {"int8", std::nullopt}), "all_to_all of f32 has no compression"));
  CHECK(mentions(why_not("all_reduce", "f32", {"int4", std::nullopt}), "int4"));
  CHECK(mentions(why_not("all_reduce", "f32", {"auto", std::nullopt}), "name a format"));
}
