// Progress of every instruction of a running program, and the queue of instructions that can go on.
//
// Progress is a prefix, in bytes, of the instruction's range. A segmentwise dependent may follow as far as the prefix
// reaches; any other dependent waits for the whole range. An instruction without bytes moves nothing, but still waits
// for its dependencies, because it may order other instructions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/plan/program.hpp"
#include "worker/engine/program/coding.hpp"
#include "worker/engine/program/index_queue.hpp"
#include "worker/engine/program/partials.hpp"
#include "worker/engine/trace/timeline.hpp"

namespace chorus::engine {

// Owned by one run, used by one thread. Allocates in the constructor only.
class Scoreboard {
 public:
  // total_bytes[i]: bytes that instruction i moves, as Addresses counts them with the same coding. The program and the
  // timeline, if there is one, outlive the scoreboard. An instruction is `ahead` in at most one flow limit and `behind`
  // in at most one.
  Scoreboard(plan::Program const& program, std::vector<std::uint64_t> total_bytes,
             std::vector<FlowLimit> const& flow_limits = {}, Timeline* timeline = nullptr,
             std::optional<Coding> const& coding = std::nullopt);

  // Resets the scoreboard to its first state: no instruction has moved.
  void begin();

  [[nodiscard]] std::uint64_t total(std::uint32_t i) const { return total_[i]; }
  [[nodiscard]] std::vector<std::uint64_t> const& totals() const { return total_; }
  [[nodiscard]] std::uint64_t done(std::uint32_t i) const { return done_[i]; }
  // Returns how far instruction i may go by its dependencies and its flow limit; >= done(i).
  [[nodiscard]] std::uint64_t ready(std::uint32_t i) const;

  // Records `bytes` more of instruction i as done, and wakes the instructions that depend on it.
  void advance(std::uint32_t i, std::uint64_t bytes);

  // Returns the next woken instruction; each instruction is queued once until it is taken.
  [[nodiscard]] std::optional<std::uint32_t> next();
  void wake(std::uint32_t i);
  [[nodiscard]] bool idle() const { return woken_.empty(); }

  [[nodiscard]] std::uint32_t completed() const { return completed_; }
  [[nodiscard]] bool finished() const { return completed_ == total_.size(); }
  // True if instruction i is not done and nothing keeps it from going on.
  [[nodiscard]] bool is_under_way(std::uint32_t i) const { return done(i) < total_[i] && ready(i) > done(i); }
  // Sum of the bytes done by all instructions.
  [[nodiscard]] std::uint64_t progress() const { return progress_; }

 private:
  struct Dependent {
    std::uint32_t instruction;
    bool segmentwise;
  };
  void complete(std::uint32_t i);
  // Returns how far the progress of `dependency` reaches in the bytes of instruction i.
  [[nodiscard]] std::uint64_t reached(std::uint32_t dependency, std::uint32_t i) const;
  [[nodiscard]] std::uint64_t allowed_by_dependencies(std::uint32_t i) const;
  [[nodiscard]] bool waits_for_whole(std::uint32_t i, bool segmentwise) const { return !segmentwise || total_[i] == 0; }

  plan::Program const& program_;
  std::vector<std::uint64_t> total_;
  std::vector<std::uint64_t> done_;
  std::vector<FlowLimit> flow_limits_;
  std::vector<std::uint32_t> waits_;  // dependencies that have to be completed as a whole
  std::vector<Dependent> dependents_;
  std::vector<std::uint32_t> dependents_begin_;
  std::optional<Coding> coding_;
  std::vector<Counted> counted_;               // by instruction; empty without codes
  std::vector<std::uint32_t> ahead_, behind_;  // by instruction: its index in flow_limits_, or no_lag
  IndexQueue woken_;
  std::vector<bool> is_woken_;
  std::uint32_t completed_ = 0;
  std::uint64_t progress_ = 0;
  Timeline* const timeline_;
};

}  // namespace chorus::engine
