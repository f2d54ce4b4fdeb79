// Runs lives from seeds, for the test programs: as many as the environment says, or a single one with its logs.
#pragma once

#include "tests/simulation/life.hpp"

namespace chorus::simulation {

// Runs the life of CHORUS_SEED alone, with the logs of all services. Without that variable: of the seeds from 1 on,
// CHORUS_SEEDS of them, or as many as CHORUS_SIMULATION_SECONDS allow, or `seeds`. Checks that no promise was broken.
// Returns the sum of all tallies. `coordinators` returns the number of coordinators for a seed.
Tally live_from_seeds(std::size_t seeds, std::size_t (*coordinators)(std::uint64_t seed));

// Runs the life of one seed. Checks the same.
Tally live_from_seed(std::uint64_t seed, std::size_t coordinators);

}  // namespace chorus::simulation
