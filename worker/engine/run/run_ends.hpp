// Ends runs: callers, peers and connections are told, and the end is kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "worker/engine/run/run_table.hpp"
#include "worker/engine/run/unrested_runs.hpp"
#include "worker/engine/transport/connection_table.hpp"
#include "worker/engine/transport/memory_health.hpp"

namespace chorus::engine {

// Tells the caller that its run does not begin.
void reject(RunDone const& done, Failure const& why);

// Used on the data thread only, while ConnectionOwner::settle() is held. The constructor's arguments outlive the
// object.
class RunEnds {
 public:
  RunEnds(ConnectionOwner& owner, RunTable& runs, ConnectionTable& connections, UnrestedRuns& unrested)
      : owner_(owner), runs_(runs), connections_(connections), unrested_(unrested) {}
  RunEnds(RunEnds const&) = delete;
  RunEnds& operator=(RunEnds const&) = delete;

  // Ends a run that is under way. With a failure, its peers are told.
  void end(Run& run, std::optional<Failure> failure);
  // No effect if the run is not under way.
  void fail(std::uint64_t run, Failure failure);
  void fail_all(Failure const& failure);
  // See ConnectionOwner.
  void fail_for(Error const& why, std::uint64_t run, plan::Rank rank, std::string const& where);
  void fail_awaiting(Identity const& peer, Error const& why);

  // Ends a run that was not started here and never will be. Data that peers have sent is dropped, and they are told.
  void end_before_start(std::uint64_t run, Failure const& failure);
  // The same after a peer has given it up.
  void end_unstarted(std::uint64_t run, std::uint32_t epoch, links::FailureNotice const& failure_notice,
                     Failure failure);
  // Rejects a run for which this rank lacks something. Its peers are told.
  void refuse(RunSpec const& spec, RunDone const& done, Error const& why);
  // See DataPlane.
  void give_up(RunSpec const& spec, plan::Rank rank, Error const& why);

 private:
  ConnectionOwner& owner_;
  RunTable& runs_;
  ConnectionTable& connections_;
  UnrestedRuns& unrested_;
};

}  // namespace chorus::engine
