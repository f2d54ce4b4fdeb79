// Runs that are begun and ended as exchanges (pair_exchange.hpp), one at a time.
#pragma once

#include <memory>

#include "worker/engine/run/run_table.hpp"
#include "worker/engine/transport/connection_table.hpp"
#include "worker/engine/transport/memory_health.hpp"

namespace chorus::engine {

// Used on the data thread only. The constructor's arguments outlive the object.
class ExchangeRuns {
 public:
  ExchangeRuns(RunTable& runs, ConnectionTable& connections, Surroundings& surroundings, MemoryHealth const& memory)
      : runs_(runs), connections_(connections), surroundings_(surroundings), memory_(memory) {}
  ExchangeRuns(ExchangeRuns const&) = delete;
  ExchangeRuns& operator=(ExchangeRuns const&) = delete;

  // Starts the next run of `kept` as an exchange, which sends its message at once. False if that is impossible: `kept`
  // and `done` are unchanged, and the run is to begin in the ordinary way.
  [[nodiscard]] bool begin(std::unique_ptr<Run>& kept, RunCall const& call, RunDone& done);
  // See ConnectionOwner::exchange_takes.
  [[nodiscard]] bool take(links::CoalescedFrame const& coalesced_frame, Identity const& sender, Scratch scratch);
  // Ends the exchange if its message has arrived. No call is under way.
  void end_arrived();

 private:
  RunTable& runs_;
  ConnectionTable& connections_;
  Surroundings& surroundings_;
  MemoryHealth const& memory_;
};

}  // namespace chorus::engine
