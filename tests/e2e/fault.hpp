// A fault of one worker of a fleet, or of all.
#pragma once

#include <cstddef>
#include <random>
#include <span>
#include <string>

#include "tests/e2e/fault_fleet.hpp"
#include "tests/support/faults/fault_proxy.hpp"

namespace chorus::testing {

struct Fault {
  enum class Kind {
    kill,
    stop,  // for a part of its lease
    stop_beyond_the_lease,
    harm,  // to its connections
    stop_all_workers,
    stop_coordinator,
  };
  Kind kind = Kind::kill;
  Harm harm = Harm::none;
  std::size_t victim = 0;  // FaultFleet::nobody: all workers, or the coordinator
};
std::string to_string(Fault const& fault);

// Draws one of the harms in six of ten cases.
Fault draw_fault(std::mt19937_64& random, std::span<Harm const> harms);

// Draws a stop of all workers or of the coordinator.
Fault draw_fault_of_all(std::mt19937_64& random);

// A stop for a part of the lease ends within begin(), everything else with end().
void begin(Fault const& fault, FaultFleet& fleet);
void end(Fault const& fault, FaultFleet& fleet);

}  // namespace chorus::testing
