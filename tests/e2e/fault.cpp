#include "tests/e2e/fault.hpp"

#include <signal.h>

#include <chrono>
#include <thread>

namespace chorus::testing {

using Kind = Fault::Kind;

std::string to_string(Fault const& fault) {
  switch (fault.kind) {
    case Kind::kill:
      return "kill";
    case Kind::stop:
      return "stop";
    case Kind::stop_beyond_the_lease:
      return "stop_beyond_the_lease";
    case Kind::stop_all_workers:
      return "stop_all_workers";
    case Kind::stop_coordinator:
      return "stop_coordinator";
    case Kind::harm:
      return to_string(fault.harm);
  }
  return "";
}

Fault draw_fault(std::mt19937_64& random, std::span<Harm const> harms) {
  Fault fault;
  auto const kind = random() % 10;
  fault.kind = kind < 2 ? Kind::kill : kind == 2 ? Kind::stop : kind == 3 ? Kind::stop_beyond_the_lease : Kind::harm;
  fault.harm = harms[random() % harms.size()];
  fault.victim = random() % FaultFleet::workers_count;
  return fault;
}

Fault draw_fault_of_all(std::mt19937_64& random) {
  return {random() % 2 == 0 ? Fault::Kind::stop_all_workers : Fault::Kind::stop_coordinator, Harm::none,
          FaultFleet::nobody};
}

namespace {

void signal_all(Fault const& fault, FaultFleet& fleet, int number) {
  if (fault.kind == Kind::stop_coordinator) return fleet.coordinator().process.signal(number);
  for (std::size_t i = 0; i < FaultFleet::workers_count; ++i) fleet.worker(i).process.signal(number);
}

}  // namespace

void begin(Fault const& fault, FaultFleet& fleet) {
  constexpr std::chrono::milliseconds part_of_the_lease{300};
  if (fault.victim == FaultFleet::nobody) return signal_all(fault, fleet, SIGSTOP);
  auto& process = fleet.worker(fault.victim).process;
  if (fault.kind == Kind::kill) process.signal(SIGKILL);
  if (fault.kind == Kind::stop || fault.kind == Kind::stop_beyond_the_lease) process.signal(SIGSTOP);
  if (fault.kind == Kind::harm) fleet.proxy(fault.victim).suffer(fault.harm);
  if (fault.kind == Kind::stop) {
    // The length of the stop is the fault.
    std::this_thread::sleep_until(std::chrono::steady_clock::now() + part_of_the_lease);
    process.signal(SIGCONT);
  }
}

void end(Fault const& fault, FaultFleet& fleet) {
  if (fault.victim == FaultFleet::nobody) return signal_all(fault, fleet, SIGCONT);
  if (fault.kind == Kind::kill) fleet.restart(fault.victim);
  if (fault.kind == Kind::stop_beyond_the_lease) fleet.worker(fault.victim).process.signal(SIGCONT);
  fleet.proxy(fault.victim).suffer(Harm::none);
}

}  // namespace chorus::testing
