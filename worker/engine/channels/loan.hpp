// Memory of a run that a peer may still read in place.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace chorus::engine {

// A loan is returned when the peer says so, or some time after its link has ended. If the peer ended the link, its
// process is gone or has dropped the run: a moment suffices for reads that its GPU has already queued. If this side
// ended the link, the peer may be stopped in the middle of the run: on waking it discards what it read if it stood
// still for Engine::standstill, which is shorter than the patience here.
class Loan {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit Loan(std::uint64_t run) : run_(run) {}

  [[nodiscard]] std::uint64_t run() const { return run_; }
  void returned() { back_at_ = TimePoint::min(); }
  void link_ended(TimePoint now, bool by_peer) {
    if (!back_at_) back_at_ = now + (by_peer ? moment : patience);
  }
  [[nodiscard]] bool is_back(TimePoint now) const { return back_at_ && now >= *back_at_; }

 private:
  static constexpr std::chrono::seconds moment{1};
  static constexpr std::chrono::seconds patience{10};

  std::uint64_t const run_;
  std::optional<TimePoint> back_at_;
};

}  // namespace chorus::engine
