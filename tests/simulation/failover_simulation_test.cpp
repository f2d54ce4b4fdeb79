// Simulates clusters with two or three coordinators on a modelled etcd: leaders are killed, stopped, cut off or told to
// hand over, and etcd fails. The environment chooses the seeds as for cluster_simulation_test.cpp:
//
//   CHORUS_SEEDS=3000 build/release/tests/test_failover_simulation
#include <doctest/doctest.h>

#include "tests/simulation/seeds.hpp"

using namespace chorus::simulation;

namespace {

constexpr std::size_t seeds = 12;

std::size_t two_or_three(std::uint64_t seed) { return 2 + seed % 2; }

}  // namespace

TEST_CASE("under faults of leaders and of etcd, no promise is broken, and one coordinator leads") {
  auto const total = live_from_seeds(seeds, two_or_three);
  CHECK(total.terms > 0);
}

TEST_CASE("a seed replays, also with threads that wait for etcd") {
  CHECK(live_from_seed(1, 2) == live_from_seed(1, 2));
}
