// Asks and tells between ranks: what each does in a run that stands still, so that the one that holds it up is named.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "worker/engine/run/run_ends.hpp"
#include "worker/links/frames/inquiry.hpp"

namespace chorus::engine {

// Used on the data thread only, while ConnectionOwner::settle() is held. The constructor's arguments outlive the
// object.
class Inquiries {
 public:
  using TimePoint = Run::TimePoint;

  Inquiries(ConnectionOwner& owner, RunTable& runs, ConnectionTable& connections, RunEnds& ends)
      : owner_(owner), runs_(runs), connections_(connections), ends_(ends) {}
  Inquiries(Inquiries const&) = delete;
  Inquiries& operator=(Inquiries const&) = delete;

  // Ends the runs whose deadline has passed, or whose peers have been silent for too long, and asks for the others.
  void check(TimePoint now);
  // See ConnectionOwner.
  void asked(Connection& by, std::uint64_t run, std::uint32_t epoch, links::Ask const& ask);
  void told(Identity const& by, std::uint64_t run, links::Tell tell);
  void lost_touch(Identity const& peer, std::uint64_t run, Error const& why);

  // Progress of all runs that are under way, or of the given one.
  [[nodiscard]] std::vector<RunProgress> progress(std::optional<std::uint64_t> run);

 private:
  // Asks the ranks that the run waits for, and ends the run if one of them has been silent for too long.
  void inquire(Run& run, TimePoint now);
  // Tells the flight recorder when a run begins to stand still, and when it goes on.
  void look_for_stall(Run& run, TimePoint now);
  [[nodiscard]] Connection& connection_to(Run& run, plan::Rank rank);

  ConnectionOwner& owner_;
  RunTable& runs_;
  ConnectionTable& connections_;
  RunEnds& ends_;
};

}  // namespace chorus::engine
