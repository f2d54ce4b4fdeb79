// Limits for the time and memory of planning and simulation. Time is the processor time of one thread, so that the load
// of the machine does not matter. Slow; needs an optimized build without sanitizers.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <string>

#include "collectives/model/choice/select.hpp"
#include "collectives/model/model_for_tests.hpp"
#include "collectives/model/time/simulate.hpp"

using namespace chorus;
using namespace chorus::model;

namespace {

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

template <typename Work>
double processor_seconds_of(Work const& work) {
  auto const begin = processor_seconds();
  work();
  return processor_seconds() - begin;
}

double resident_gib() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_maxrss) / (1 << 20);
}

void simulate_all(std::string const& topology) {
  auto const localities = places(topology);
  Network const network(localities, defaults_for(topology));
  for (auto const op : all_ops)
    for (auto const* algorithm : algorithms::all_for(op)) {
      auto const spec = spec_of(*algorithm, {.op = op, .ranks = network.ranks()});
      if (algorithm->check(spec).has_value()) CHECK(simulate(*algorithm, spec, network, 1 << 20, 4).cost.seconds > 0);
    }
}

}  // namespace

TEST_CASE("planning for a group of 1,000 takes under 50 ms") {
  for (std::string const topology : {"flat:1000", "hosts:125x8", "racks:5x25x8"}) {
    auto const localities = places(topology);
    for (auto const op : all_ops) {
      auto fastest_s = 1e9;
      for (int repeat = 0; repeat < 5; ++repeat)
        fastest_s = std::min(fastest_s, processor_seconds_of([&] {
                               CHECK(select({.op = op}, localities, 1 << 20, 4, Constants::defaults()).has_value());
                             }));
      CAPTURE(topology);
      CAPTURE(name(op));
      CHECK(fastest_s < 0.05);
    }
  }
}

TEST_CASE("every algorithm of every operation at p = 4,096 is simulated in under a minute") {
  for (std::string const topology : {"flat:4096", "hosts:512x8"}) {
    auto const seconds = processor_seconds_of([&] { simulate_all(topology); });
    MESSAGE(topology << ": " << seconds << " s");
    CHECK(seconds < 60);
  }
}

TEST_CASE("a ring of 10,000 is simulated in under 10 s") {
  std::string const topology = "flat:10000";
  auto const localities = places(topology);
  Network const network(localities, defaults_for(topology));
  auto const seconds = processor_seconds_of([&] {
    plan::Spec const spec = spec_of(algorithms::ring, {.ranks = network.ranks()});
    CHECK(simulate(algorithms::ring, spec, network, 1 << 20, 4).cost.rounds == 2 * 9999);
  });
  MESSAGE(topology << ": " << seconds << " s");
  CHECK(seconds < 10);
}

TEST_CASE("planning and all simulations of this file take less than 1 GiB of memory") { CHECK(resident_gib() < 1); }
