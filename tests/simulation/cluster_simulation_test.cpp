// Whole clusters live and are tried, each from one number: see life.hpp. A seed that fails is printed, and fails again:
//
//   CHORUS_SEEDS=100000 build/release/tests/test_cluster_simulation    that many; for ever with 0
//   CHORUS_SIMULATION_SECONDS=120 build/release/tests/test_cluster_simulation    as many as there is time for
//   CHORUS_SEED=4711 build/release/tests/test_cluster_simulation       this one alone, with the logs of everybody
#include <doctest/doctest.h>

#include "tests/simulation/seeds.hpp"

using namespace chorus::simulation;

namespace {

std::size_t one(std::uint64_t /*seed*/) { return 1; }

}  // namespace

TEST_CASE("whatever happens to a cluster, everything ends, sums are right everywhere or nowhere, and it recovers") {
  static_cast<void>(live_from_seeds(40, one));
}
