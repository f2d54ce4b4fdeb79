#include "collectives/model/time/simulate.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "collectives/algorithms/representative.hpp"
#include "collectives/model/model_for_tests.hpp"
#include "collectives/model/time/fold.hpp"

using namespace chorus;
using namespace chorus::model;
using plan::Spec;

namespace {

Simulation simulated(plan::Algorithm const& algorithm, Spec const& spec, std::vector<Locality> const& localities,
                     Constants const& constants, std::uint64_t elements, std::size_t element_bytes = 1) {
  Network const network(localities, constants);
  return simulate(algorithm, spec_of(algorithm, spec), network, elements, element_bytes);
}

double microseconds(plan::Algorithm const& algorithm, Spec const& spec, std::uint64_t bytes,
                    Constants const& constants = round_numbers()) {
  return simulated(algorithm, spec, std::vector<Locality>(spec.ranks), constants, bytes).cost.seconds * 1e6;
}

std::string bottleneck(plan::Algorithm const& algorithm, std::string const& topology, std::uint64_t bytes) {
  auto const localities = places(topology);
  Spec const spec{.ranks = static_cast<std::uint32_t>(localities.size())};
  return simulated(algorithm, spec, localities, defaults_for(topology), bytes).bottleneck;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TEST_CASE("simulate() gives the closed forms of ring, star, tree and chain") {
  CHECK(microseconds(algorithms::ring, {.ranks = 4}, 0) == approximately(6));
  CHECK(microseconds(algorithms::ring, {.ranks = 4}, 4000) == approximately(3 * (1 + 1 + 0.5) + 3 * (1 + 1)));
  CHECK(microseconds(algorithms::ring, {.ranks = 1000}, 1'000'000) == approximately(999 * (2.5 + 2)));
  CHECK(microseconds(algorithms::centralized, {.ranks = 4}, 0) == approximately(6));
  CHECK(microseconds(algorithms::centralized, {.ranks = 4}, 1000) == approximately(3 * 2.5 + 3 * 2));
  CHECK(microseconds(algorithms::tree, {.ranks = 7, .arity = 2}, 0) == approximately(8));
  CHECK(microseconds(algorithms::tree, {.ranks = 4, .arity = 1}, 1000) == approximately(3 * 2.5 + 3 * 2));
  CHECK(microseconds(algorithms::halving_doubling, {.ranks = 8}, 8000) ==
        approximately(3 * 1 + (4 + 2 + 1) * 1.5 + 3 * 1 + 4 + 2 + 1));
  CHECK(microseconds(algorithms::recursive_doubling, {.op = Op::barrier, .ranks = 8}, 0) == approximately(3 + 0.007));
}

TEST_CASE("if all ranks do the same, simulate() examines one rank and gives the same result") {
  for (std::string const topology : {"flat:9", "hosts:3x3", "racks:2x3x2"})
    for (auto const op : {Op::all_reduce, Op::all_gather, Op::reduce_scatter, Op::all_to_all})
      for (auto const* algorithm : algorithms::all_for(op))
        for (bool const in_place : {false, true}) {
          auto const localities = places(topology);
          Spec const spec{.op = op, .ranks = static_cast<std::uint32_t>(localities.size()), .in_place = in_place};
          if (algorithm->rotates == nullptr || algorithm->check(spec_of(*algorithm, spec)).has_error()) continue;
          auto each_by_itself = *algorithm;
          each_by_itself.rotates = nullptr;
          for (std::uint64_t const bytes : {1'000, 1'000'003}) {
            auto const at_once = simulated(*algorithm, spec, localities, defaults_for(topology), bytes);
            auto const one_by_one = simulated(each_by_itself, spec, localities, defaults_for(topology), bytes);
            CAPTURE(topology);
            CAPTURE(algorithm->name);
            CAPTURE(name(op));
            CHECK(at_once.cost.seconds == one_by_one.cost.seconds);
            CHECK(at_once.cost.bytes_per_rank == one_by_one.cost.bytes_per_rank);
            CHECK(at_once.cost.rounds == one_by_one.cost.rounds);
            CHECK(at_once.bottleneck == one_by_one.bottleneck);
          }
        }
}

TEST_CASE("simulate() gives the time of follow() for segments in a chain") {
  auto constants = round_numbers();
  constants.segment_bytes = 10'000;
  Spec const chain{.ranks = 9, .arity = 1};
  auto const in_segments = microseconds(algorithms::tree, chain, 160'000, constants);
  std::vector<Locality> const localities(9);
  Network const network(localities, constants);
  auto const followed = follow(programs_of(algorithms::tree, chain), network, 160'000, 1).seconds * 1e6;
  CHECK(in_segments == doctest::Approx(followed).epsilon(0.15));
  CHECK(in_segments < microseconds(algorithms::tree, chain, 160'000) / 3);
}

TEST_CASE("the times of simulate() are near those of follow() for all algorithms") {
  std::vector<double> ratios;
  for (std::string const topology : {"flat:2", "flat:3", "flat:4", "flat:7", "flat:8", "flat:13", "hosts:2x4",
                                     "hosts:3x5", "racks:2x2x4;uplink_rack=50Gbit/s"}) {
    auto constants = defaults_for(topology);
    constants.host_cores = 0;
    auto const localities = places(topology);
    Network const network(localities, constants);
    for (auto const op : all_ops)
      for (auto const* algorithm : algorithms::all_for(op))
        for (auto const& spec : algorithms::representative_specs(*algorithm, op, network.ranks())) {
          if (spec.root != 0 && spec.root + 1 != spec.ranks) continue;
          auto const programs = programs_of(*algorithm, spec);
          for (std::uint64_t const elements : {0u, 1u, 1001u, 1u << 18, 4u << 20}) {
            auto const simulation = simulate(*algorithm, spec, network, elements, 4);
            auto const followed = follow(programs, network, elements, 4);
            CAPTURE(to_string(spec));
            CAPTURE(topology);
            CAPTURE(elements);
            REQUIRE(simulation.cost.rounds == followed.rounds);
            REQUIRE(simulation.cost.bytes_per_rank == followed.bytes_per_rank);
            REQUIRE((simulation.cost.seconds > 0) == (followed.seconds > 0));
            if (followed.seconds > 0) ratios.push_back(simulation.cost.seconds / followed.seconds);
          }
        }
  }
  std::sort(ratios.begin(), ratios.end());
  auto const quantile = [&](double q) { return ratios[static_cast<std::size_t>(q * double(ratios.size() - 1))]; };
  // If several messages are ready at once follow() serves them in order of arrival, and may delay messages that the
  // order of rounds would not. This makes the long lower tail.
  CHECK(quantile(0.5) == doctest::Approx(1).epsilon(0.001));
  CHECK(quantile(0.15) > 0.85);
  CHECK(quantile(0.9) < 1.05);
  CHECK(ratios.front() > 0.1);
  CHECK(ratios.back() < 2.3);
}

TEST_CASE("no algorithm is below the lower bound, and the ring has the least bytes") {
  for (auto const op : all_ops)
    for (std::uint32_t p = 1; p <= 24; ++p)
      for (std::uint64_t const elements : {0u, 1u, p, p + 1, 1000u, 1001u}) {
        auto const least = lower_bound(op, p, elements);
        for (auto const* algorithm : algorithms::all_for(op)) {
          auto const spec = spec_of(*algorithm, {.op = op, .ranks = p});
          if (algorithm->check(spec).has_error()) continue;
          auto const cost = simulated(*algorithm, spec, std::vector<Locality>(p), round_numbers(), elements).cost;
          CAPTURE(to_string(spec));
          CAPTURE(elements);
          if (op == Op::all_reduce || op == Op::barrier) REQUIRE(cost.rounds >= least.rounds);
          REQUIRE(cost.bytes_per_rank >= least.bytes_per_rank);
          if (op == Op::all_reduce && algorithm == &algorithms::ring && elements % p == 0)
            REQUIRE(cost.bytes_per_rank == least.bytes_per_rank);
        }
      }
  CHECK(lower_bound(Op::all_reduce, 4, 1000).bytes_per_rank == 1500);
  CHECK(lower_bound(Op::all_reduce, 3, 1).bytes_per_rank == 2);  // 4/3, rounded up
  CHECK(lower_bound(Op::all_reduce, 5, 1).rounds == 3);
  CHECK(lower_bound(Op::all_reduce, 8, 1).rounds == 3);
  CHECK(lower_bound(Op::all_reduce, 65'536, std::uint64_t{1} << 62).bytes_per_rank > std::uint64_t{1} << 62);
  CHECK(lower_bound(Op::all_gather, 4, 1000).bytes_per_rank == 750);
  CHECK(lower_bound(Op::scatter, 4, 5).bytes_per_rank == 3);  // the root may have the larger share
  CHECK(lower_bound(Op::broadcast, 4, 5).bytes_per_rank == 5);
  CHECK(lower_bound(Op::barrier, 4, 0).rounds == 2);
}

TEST_CASE("simulate() names the bottleneck") {
  auto constexpr megabytes = std::uint64_t{64} << 20;
  CHECK(bottleneck(algorithms::centralized, "flat:8", megabytes) == "port of rank 0 (receive)");
  CHECK(bottleneck(algorithms::ring, "flat:8", 4) == "latency");
  CHECK(bottleneck(algorithms::recursive_doubling, "hosts:2x8", megabytes) == "nic of host h0 (send)");
  CHECK(bottleneck(algorithms::ring, "racks:2x4x2;uplink_rack=1Gbit/s", megabytes) == "rack uplink of rack r0 (send)");
  CHECK(bottleneck(algorithms::mesh, "hosts:1x64", 1 << 20) == "cores of host h0");
  CHECK(bottleneck(algorithms::ring, "flat:1", 4) == "latency");
}

TEST_CASE("ranks of one host share its network card, its cores and the uplink of their rack") {
  auto constexpr bytes = std::uint64_t{64} << 20;
  auto const seconds = [&](plan::Algorithm const& algorithm, std::string const& topology) {
    auto const localities = places(topology);
    Spec const spec{.ranks = static_cast<std::uint32_t>(localities.size())};
    auto constants = defaults_for(topology);
    constants.host_cores = 0;
    return simulated(algorithm, spec, localities, constants, bytes).cost.seconds;
  };
  // Eight concurrent flows through one card, compared to eight cards.
  CHECK(seconds(algorithms::recursive_doubling, "hosts:2x8") >
        1.5 * seconds(algorithms::recursive_doubling, "hosts:2x8;uplink_host=200Gbit/s"));
  // In the ring only one flow leaves a host, so its card is no limit.
  CHECK(seconds(algorithms::ring, "hosts:2x8") ==
        doctest::Approx(seconds(algorithms::ring, "hosts:2x8;uplink_host=200Gbit/s")));
  CHECK(seconds(algorithms::ring, "racks:2x4x2;uplink_rack=1Gbit/s") > 8 * seconds(algorithms::ring, "racks:2x4x2"));

  auto few_cores = round_numbers();
  few_cores.host_cores = 1;
  few_cores.message_cpu_s = 1e-6;
  // One core does seven messages in and seven out per rank, in any order.
  CHECK(microseconds(algorithms::ring, {.ranks = 8}, 0, few_cores) == approximately(14 * 8 * 2));
  // With a core for each rank, its fourteen messages out and fourteen in are still the work of one thread.
  few_cores.host_cores = 16;
  CHECK(microseconds(algorithms::ring, {.ranks = 8}, 0, few_cores) == approximately(28));
}

TEST_CASE("data over a slow link arrives late and delays the plan") {
  std::vector<Locality> near{{"", "", "", "a"}, {"", "", "", "a"}, {"", "", "", "b"}, {"", "", "", "b"}};
  std::vector<Locality> const scattered{near[0], near[2], near[1], near[3]};
  auto const seconds = [&](Spec const& spec, plan::Algorithm const& algorithm, std::vector<Locality> const& where) {
    return simulated(algorithm, spec, where, round_numbers(), 4000).cost.seconds;
  };
  CHECK(seconds({.ranks = 4}, algorithms::ring, near) >
        5 * seconds({.ranks = 4}, algorithms::ring, std::vector<Locality>(4)));
  CHECK(seconds({.ranks = 4, .arity = 1}, algorithms::tree, near) <
        seconds({.ranks = 4, .arity = 1}, algorithms::tree, scattered));
}

TEST_CASE("both ends of every message are in the same round in all algorithms") {
  for (std::uint32_t const p : {1u, 2u, 5u, 16u, 33u})
    for (auto const op : all_ops)
      for (auto const* algorithm : algorithms::all_for(op))
        for (auto const& spec : algorithms::representative_specs(*algorithm, op, p)) {
          CAPTURE(to_string(spec));
          // Fails the test if a message is not found.
          CHECK(simulated(*algorithm, spec, std::vector<Locality>(p), round_numbers(), 100).cost.seconds >= 0);
        }
}

TEST_CASE("simulation of all algorithms at p = 1024 takes a small part of the limit for 4096") {
  auto const localities = places("hosts:128x8");
  Network const network(localities, Constants::defaults());
  auto const begin = std::chrono::steady_clock::now();
  for (auto const op : all_ops)
    for (auto const* algorithm : algorithms::all_for(op)) {
      auto const spec = spec_of(*algorithm, {.op = op, .ranks = network.ranks()});
      if (algorithm->check(spec).has_value()) CHECK(simulate(*algorithm, spec, network, 1 << 20, 4).cost.seconds > 0);
    }
  auto const seconds = seconds_since(begin);
  MESSAGE("all operations and algorithms at p = 1024: " << seconds << " s");
  CHECK(seconds < 60);  // 1.5 s on an idle core; sanitizers take twenty times that
}

TEST_CASE("the part of a latency that is not work does not delay other messages") {
  auto constants = round_numbers();
  constants.message_cpu_s = 0.1e-6;
  CHECK(microseconds(algorithms::centralized, {.op = Op::reduce, .ranks = 9}, 0, constants) ==
        approximately(1 + 7 * 0.1));
  CHECK(microseconds(algorithms::ring, {.ranks = 4}, 0, constants) == approximately(6));
}

TEST_CASE("with more ranks than cores every message wakes its receiver") {
  auto constants = round_numbers();
  constants.host_cores = 8;
  constants.wake_s = 5e-6;
  CHECK(microseconds(algorithms::ring, {.ranks = 8}, 0, constants) == approximately(14));
  CHECK(microseconds(algorithms::ring, {.ranks = 9}, 0, constants) == approximately(16 * (1 + 5)));
}

TEST_CASE("the two copies of a message within a host overlap, except those of its first piece") {
  auto constants = round_numbers();
  constants.host_cores = 8;
  constants.byte_cpu_s = 1e-9;
  plan::Spec const pair{.op = Op::broadcast, .ranks = 2, .in_place = true};
  CHECK(microseconds(algorithms::centralized, pair, 1000, constants) == approximately(1 + 2 * 1));
  CHECK(microseconds(algorithms::centralized, pair, 165'536, constants) == approximately(1 + 165.536 + 65.536));
}
