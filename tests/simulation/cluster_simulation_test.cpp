// Simulates clusters with one coordinator and faults, each from one seed: see life.hpp. A failing seed is printed, and
// fails again:
//
//   CHORUS_SEEDS=100000 build/release/tests/test_cluster_simulation    so many seeds; 0: without end
//   CHORUS_SIMULATION_SECONDS=120 build/release/tests/test_cluster_simulation    as many as the time allows
//   CHORUS_SEED=4711 build/release/tests/test_cluster_simulation       this seed alone, with the logs of all services
#include <doctest/doctest.h>

#include "tests/simulation/seeds.hpp"

using namespace chorus::simulation;

namespace {

std::size_t one(std::uint64_t /*seed*/) { return 1; }

}  // namespace

TEST_CASE("under any faults, everything ends, sums are right on all ranks or on none, and the cluster recovers") {
  static_cast<void>(live_from_seeds(40, one));
}

TEST_CASE("a seed replays: no thread or time of the machine decides anything") {
  for (std::uint64_t const seed : {1, 2}) CHECK(live_from_seed(seed, 1) == live_from_seed(seed, 1));
}
