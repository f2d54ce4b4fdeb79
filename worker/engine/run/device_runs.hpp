// Runs that use a GPU: how they begin and advance, and what they borrow of the GPUs of peers.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "worker/engine/gpu/borrowed_arenas.hpp"
#include "worker/engine/run/run_ends.hpp"

namespace chorus::engine {

// Used on the data thread only, while ConnectionOwner::settle() is held. The constructor's arguments outlive the
// object.
class DeviceRuns {
 public:
  DeviceRuns(ConnectionOwner& owner, RunTable& runs, RunEnds& ends, UnrestedRuns& unrested, BorrowedArenas& borrowed)
      : owner_(owner), runs_(runs), ends_(ends), unrested_(unrested), borrowed_(borrowed) {}
  DeviceRuns(DeviceRuns const&) = delete;
  DeviceRuns& operator=(DeviceRuns const&) = delete;

  // Device work of the run; null if the run has no GPU. Empty if the GPU refused: then caller and peers have been told.
  [[nodiscard]] std::optional<std::unique_ptr<DeviceWork>> begin(RunSpec const& spec, RunDone const& done);
  // True while GPUs work for runs that go on, or did at the last poll.
  [[nodiscard]] bool are_at_work() const;
  // Advances runs whose GPUs have finished work. Returns true if any had.
  bool poll();
  // See ConnectionOwner.
  void look_for_standstill();
  [[nodiscard]] Borrowed borrow(RunSpec const& spec, Identity const& peer, links::Lend const& lend,
                                links::Borrow& told);

 private:
  // A process that was stopped for this long discards what it has read in place: the lender may have reused the memory.
  static constexpr std::chrono::seconds standstill{5};

  ConnectionOwner& owner_;
  RunTable& runs_;
  RunEnds& ends_;
  UnrestedRuns& unrested_;
  BorrowedArenas& borrowed_;
};

}  // namespace chorus::engine
