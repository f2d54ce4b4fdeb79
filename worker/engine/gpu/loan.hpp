// Memory of a run that a peer may still read where it lies.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace chorus::engine {

// It is back when the peer says so, or some time after the link has ended. Where the peer has ended it, its process has
// gone or drops the run: a moment is enough for what its GPU has in hand, and nobody takes the result. Where it was
// ended here, the peer may stand still with the run in its hands: it goes on, if at all, before its patience ends,
// which is shorter than this one's (Engine::standstill).
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
