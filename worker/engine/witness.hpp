// What a rank knows of those that its run waits for, from asking them now and then: who is silent, who never called,
// who only waits for another one.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/plan/spec.hpp"
#include "worker/links/inquiry.hpp"

namespace chorus::engine {

struct Suspect {
  plan::Rank rank = 0;
  links::Suspicion kind = links::Suspicion::nobody;
  std::chrono::microseconds lasting{0};
  std::string text;  // by whoever waits for it: who, for whom, at which step
};

// A value without clock. Ranks are those of the run.
class Witness {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // An answer takes a while: only who owes one for longer is silent.
  static constexpr std::chrono::milliseconds answer_time{100};

  explicit Witness(std::size_t ranks) : known_(ranks) {}

  // An ask is on its way. `moved` is a number that grows with what comes from the rank by other ways: if it grew since
  // the last ask, the rank lives, whatever it owes.
  void asked(plan::Rank rank, std::uint64_t moved, TimePoint now);
  void told(plan::Rank rank, links::Tell tell, TimePoint now);
  // This process has not run for a while: answers may lie unread, and what is owed counts from now.
  void stood_still(TimePoint now);

  // For how long the rank has owed an answer; zero if it does not.
  [[nodiscard]] std::chrono::microseconds owing(plan::Rank rank, TimePoint now) const;
  // For how long the rank has been saying that its part of the run has ended; nothing if it does not say so.
  [[nodiscard]] std::optional<std::chrono::microseconds> ended_for(plan::Rank rank) const;
  // Whom to suspect while `self` waits for `rank`: itself, or whom it says. `text` is what this rank says of it if it
  // is the first to. Nothing before the first answer is due, or where it says that it waits for `self`.
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
