// Lives from seeds, for the test programs: as many as the environment says, or one of them with its logs.
#pragma once

#include "tests/simulation/life.hpp"

namespace chorus::simulation {

// Lives CHORUS_SEED alone with the logs of everybody, or the seeds from 1 on: CHORUS_SEEDS of them, or as many as
// CHORUS_SIMULATION_SECONDS allow, or `seeds`. Checks that no promise was broken. Returns the sum of all lives.
// `coordinators` gives their number for a seed.
Tally live_from_seeds(std::size_t seeds, std::size_t (*coordinators)(std::uint64_t seed));

}  // namespace chorus::simulation
