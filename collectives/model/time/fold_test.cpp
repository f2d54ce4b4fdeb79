#include "collectives/model/time/fold.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

#include "collectives/model/choice/select.hpp"
#include "collectives/model/model_for_tests.hpp"
#include "collectives/model/time/simulate.hpp"

using namespace chorus;
using namespace chorus::model;
using plan::Spec;

namespace {

double microseconds(plan::Algorithm const& algorithm, Spec const& spec, std::uint64_t bytes,
                    Constants const& constants = round_numbers()) {
  std::vector<Locality> const localities(spec.ranks);
  Network const network(localities, constants);
  return fold(algorithm, spec_of(algorithm, spec), network, bytes, 1).seconds * 1e6;
}

}  // namespace

TEST_CASE("fold() gives the closed forms of rings, stars, trees and exchanges") {
  CHECK(microseconds(algorithms::ring, {.ranks = 4}, 4000) == approximately(3 * (1 + 1 + 0.5) + 3 * (1 + 1)));
  CHECK(microseconds(algorithms::centralized, {.ranks = 4}, 1000) == approximately(3 * 2.5 + 3 * 2));
  CHECK(microseconds(algorithms::tree, {.ranks = 7, .arity = 2}, 0) == approximately(8));
  CHECK(microseconds(algorithms::halving_doubling, {.ranks = 8}, 8000) ==
        approximately(3 * 1 + (4 + 2 + 1) * 1.5 + 3 * 1 + 4 + 2 + 1));
  CHECK(microseconds(algorithms::recursive_doubling, {.ranks = 16}, 1000) == approximately(4 * 2.5));
}

TEST_CASE("the first segment of a long vector takes every round, and the rest follows through the busiest port") {
  auto constants = round_numbers();
  constants.segment_bytes = 1000;
  CHECK(microseconds(algorithms::chain, {.op = Op::broadcast, .ranks = 9}, 101'000, constants) ==
        approximately(8 * 2 + 100));
  CHECK(microseconds(algorithms::chain, {.op = Op::reduce, .ranks = 9}, 101'000, constants) ==
        approximately(8 * 2.5 + 150));
}

TEST_CASE("fold() of all ranks and of a sample agrees with simulate() for all operations and algorithms") {
  for (std::string const topology : {"flat:8", "flat:13", "flat:64", "flat:300", "hosts:4x8", "hosts:1x16"}) {
    auto const shape = topology::parse_shape(topology).value();
    Network const network(shape.localities, overridden(Constants::defaults(), shape));
    std::vector<double> ratios;
    for (auto const op : all_ops)
      for (auto const* algorithm : algorithms::all_for(op))
        for (std::uint64_t const elements : {1u, 1u << 10, 1u << 18, 4u << 20}) {
          auto const spec = spec_of(*algorithm, {.op = op, .ranks = network.ranks()});
          if (algorithm->check(spec).has_error()) continue;
          auto const folded = fold(*algorithm, spec, network, elements, 4);
          auto const simulated = simulate(*algorithm, spec, network, elements, 4).cost;
          CAPTURE(to_string(spec));
          CAPTURE(topology);
          CAPTURE(elements);
          auto const ratio = folded.seconds / simulated.seconds;
          CHECK(ratio > 0.29);
          CHECK(ratio < 2.3);
          CHECK(folded.bytes_per_rank <= simulated.bytes_per_rank);
          ratios.push_back(ratio);
        }
    std::sort(ratios.begin(), ratios.end());
    CHECK(ratios[ratios.size() / 2] == doctest::Approx(1).epsilon(0.05));
  }
}

TEST_CASE("fold() counts the copies between processes of a host as simulate() does") {
  auto constants = Constants::defaults();
  constants.host_cores = 64;  // no limit
  constants.byte_cpu_s = constants.link(Level::host).beta_s_per_byte;
  std::vector<Locality> const localities(16);
  Network const network(localities, constants);
  auto const spec = spec_of(algorithms::chain, {.op = Op::broadcast, .ranks = 16});
  auto const folded = fold(algorithms::chain, spec, network, 65536, 1).seconds;
  CHECK(folded == doctest::Approx(simulate(algorithms::chain, spec, network, 65536, 1).cost.seconds).epsilon(0.02));
  CHECK(folded > 2 * 15 * 65536 * constants.byte_cpu_s);  // two copies from each rank to the next
}

TEST_CASE("a smaller sample changes the folded cost little") {
  auto const localities = places("hosts:32x8");
  Network const network(localities, Constants::defaults());
  for (auto const* algorithm : algorithms::all_for(Op::all_reduce)) {
    auto const spec = spec_of(*algorithm, {.ranks = network.ranks()});
    auto const all = fold(*algorithm, spec, network, 1 << 20, 4, std::uint64_t{1} << 40);
    auto const some = fold(*algorithm, spec, network, 1 << 20, 4, 2000);
    CAPTURE(algorithm->name);
    CHECK(some.seconds == doctest::Approx(all.seconds).epsilon(0.35));
    // A round of grouped_allpairs is that of few ranks, which a sample may miss: the rest of it seems to take more.
    auto const tolerance = algorithm->coded_from == nullptr ? 0.1 : 0.3;
    CHECK(double(some.rounds) == doctest::Approx(double(all.rounds)).epsilon(tolerance));
  }
}

TEST_CASE("fold() of a very large group samples the rounds, too") {
  auto const localities = places("flat:65536");
  Network const network(localities, Constants::defaults());
  auto const spec = spec_of(algorithms::ring, {.ranks = network.ranks()});
  auto const cost = fold(algorithms::ring, spec, network, 1 << 20, 4);
  auto const rounds = 2.0 * 65535;
  CHECK(cost.rounds == doctest::Approx(rounds).epsilon(0.001));
  CHECK(cost.seconds == doctest::Approx(rounds * 25e-6).epsilon(0.02));
  CHECK(double(cost.bytes_per_rank) == doctest::Approx(2.0 * (4 << 20)).epsilon(0.01));
}
