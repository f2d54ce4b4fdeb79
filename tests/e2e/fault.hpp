// What happens to one worker of a fleet.
#pragma once

#include <cstddef>
#include <random>
#include <span>
#include <string>

#include "tests/e2e/fault_fleet.hpp"
#include "tests/support/fault_proxy.hpp"

namespace chorus::testing {

struct Fault {
  enum class Kind {
    kill,
    stop,  // for a part of its lease
    stop_beyond_the_lease,
    harm,  // to its connections
  };
  Kind kind = Kind::kill;
  Harm harm = Harm::none;
  std::size_t victim = 0;
};
std::string to_string(Fault const& fault);

// Six of ten are one of the harms.
Fault draw_fault(std::mt19937_64& random, std::span<Harm const> harms);

// A stop for a part of the lease is over when begin() returns, everything else when end() does.
void begin(Fault const& fault, FaultFleet& fleet);
void end(Fault const& fault, FaultFleet& fleet);

}  // namespace chorus::testing
