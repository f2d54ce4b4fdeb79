// Runs that are over while a GPU or a peer still uses their memory, or they use a peer's.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "worker/engine/gpu/borrowed_arenas.hpp"
#include "worker/engine/run/run.hpp"
#include "worker/engine/transport/connection_table.hpp"

namespace chorus::engine {

// Used on the data thread only. The constructor's arguments outlive the object.
class UnrestedRuns {
 public:
  using TimePoint = Run::TimePoint;
  using Runs = std::vector<std::unique_ptr<Run>>;

  UnrestedRuns(Surroundings& surroundings, ConnectionTable& connections, BorrowedArenas& borrowed)
      : surroundings_(surroundings), connections_(connections), borrowed_(borrowed) {}

  // True if nothing uses the run's memory any more, neither here nor at peers that borrowed it. Memory that the run has
  // borrowed is given back as soon as its own device rests.
  [[nodiscard]] bool rests(Run& run, TimePoint now);
  // Adds a run that does not rest yet.
  void add(std::unique_ptr<Run> run, std::optional<Failure> failure, TimePoint now);

  [[nodiscard]] bool empty() const { return runs_.empty(); }
  // Latest time for the next poll().
  [[nodiscard]] TimePoint next_deadline() const;
  // True if a peer may still read memory that one of the runs has lent.
  [[nodiscard]] bool has_lent() const;

  // Ends runs that rest by now, which go to `dead`, and those that never will. True if there were any.
  bool poll(Runs& dead);
  // Waits a while for the devices, then ends all runs.
  void end_all(Runs& dead);

 private:
  struct Unrested {
    std::unique_ptr<Run> run;
    std::optional<Failure> failure;
    TimePoint give_up;
  };
  // Longer than any work of a run takes on a device that works.
  static constexpr std::chrono::seconds device_patience{10};
  // How often to check runs that never came to rest.
  static constexpr std::chrono::seconds stuck_pause{1};

  void give_back_borrowed(Run& run);

  Surroundings& surroundings_;
  ConnectionTable& connections_;
  BorrowedArenas& borrowed_;
  std::vector<Unrested> runs_;
  Runs stuck_;  // did not come to rest in time
  TimePoint look_at_stuck_{};
};

}  // namespace chorus::engine
