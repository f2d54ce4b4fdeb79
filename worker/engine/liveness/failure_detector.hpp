// What a rank knows of the ranks that its run waits for, from asking them regularly: which are silent, which never
// called, which wait for another rank themselves.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/plan/spec.hpp"
#include "worker/links/frames/inquiry.hpp"

namespace chorus::engine {

struct Suspect {
  plan::Rank rank = 0;
  links::Suspicion kind = links::Suspicion::nobody;
  std::chrono::microseconds lasting{0};
  std::string text;  // by the rank that waits for the suspect: who waits, and at which step
};

// A value without a clock. Ranks are those of the run.
class FailureDetector {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Time that an answer may take: a rank is silent only if it owes an answer for longer.
  static constexpr std::chrono::milliseconds answer_time{100};

  explicit FailureDetector(std::size_t ranks) : known_(ranks) {}

  // An ask was sent. `moved` counts the rank's frames: if the count has grown since the last ask, the rank is alive
  // whether it has answered or not.
  void asked(plan::Rank rank, std::uint64_t moved, TimePoint now);
  void told(plan::Rank rank, links::Tell tell, TimePoint now);
  // This process was stopped for a while: answers may lie unread, so all debts count from now.
  void stood_still(TimePoint now);

  // How long the rank has owed an answer; zero if it owes none.
  [[nodiscard]] std::chrono::microseconds owing(plan::Rank rank, TimePoint now) const;
  // How long the rank has reported that its part of the run has ended; empty if it does not.
  [[nodiscard]] std::optional<std::chrono::microseconds> ended_for(plan::Rank rank) const;
  // The suspect while `self` waits for `rank`: `rank` itself, or the suspect that `rank` names. `text` describes the
  // wait if this rank is the first to suspect. Empty before the first answer is due, and if `rank` waits for `self`.
  [[nodiscard]] std::optional<Suspect> suspect(plan::Rank rank, plan::Rank self, std::string text, TimePoint now) const;

 private:
  struct Known {
    std::optional<TimePoint> owes_since;
    std::uint64_t moved = 0;
    std::optional<links::Tell> told;
    TimePoint told_at;
    TimePoint told_the_same_since;
  };
  std::vector<Known> known_;
};

}  // namespace chorus::engine
