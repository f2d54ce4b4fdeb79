// Memory of a run that a peer may still read where it lies.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace chorus::engine {

// It is back when the peer says so. Where the link ends before, its process has gone, or drops the run when it sees the
// same: a moment is enough for that.
class Loan {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit Loan(std::uint64_t run) : run_(run) {}

  [[nodiscard]] std::uint64_t run() const { return run_; }
  void returned() { back_at_ = TimePoint::min(); }
  void link_ended(TimePoint now) {
    if (!back_at_) back_at_ = now + moment;
  }
  [[nodiscard]] bool is_back(TimePoint now) const { return back_at_ && now >= *back_at_; }

 private:
  static constexpr std::chrono::seconds moment{1};

  std::uint64_t const run_;
  std::optional<TimePoint> back_at_;
};

}  // namespace chorus::engine
