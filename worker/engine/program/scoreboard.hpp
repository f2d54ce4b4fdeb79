// How far every instruction of a running program has come, and which of them can go on.
//
// Progress is a prefix in bytes of the instruction's range. A segmentwise dependent may follow as far as the prefix
// reaches; any other waits for the whole. Instructions without bytes move nothing, but still wait for their
// dependencies: others may be ordered through them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/plan/program.hpp"
#include "worker/engine/program/index_queue.hpp"
#include "worker/engine/program/partials.hpp"
#include "worker/engine/trace/timeline.hpp"

namespace chorus::engine {

// Sized once; nothing is allocated while the program runs.
class Scoreboard {
 public:
  // total_bytes[i]: of instruction i. The program outlives the scoreboard, and so does the timeline, if there is one to
  // be kept. No instruction is ahead of two, nor behind two.
  Scoreboard(plan::Program const& program, std::vector<std::uint64_t> total_bytes,
             std::vector<FlowLimit> const& flow_limits = {}, Timeline* timeline = nullptr);

  // As newly made: nothing has moved.
  void begin();

  [[nodiscard]] std::uint64_t total(std::uint32_t i) const { return total_[i]; }
  [[nodiscard]] std::vector<std::uint64_t> const& totals() const { return total_; }
  [[nodiscard]] std::uint64_t done(std::uint32_t i) const { return done_[i]; }
  // How far the instructions that i depends on let it go, and the one that it must not be too far ahead of; >= done(i).
  [[nodiscard]] std::uint64_t ready(std::uint32_t i) const;

  // `bytes` more of instruction i are done. Those that depend on it are woken.
  void advance(std::uint32_t i, std::uint64_t bytes);

  // The next instruction that was woken; each is listed once until it is taken.
  [[nodiscard]] std::optional<std::uint32_t> next();
  void wake(std::uint32_t i);
  [[nodiscard]] bool idle() const { return woken_.empty(); }

  [[nodiscard]] std::uint32_t completed() const { return completed_; }
  [[nodiscard]] bool finished() const { return completed_ == total_.size(); }
  // Nothing that it depends on keeps instruction i from going on, and it is not done.
  [[nodiscard]] bool is_under_way(std::uint32_t i) const { return done(i) < total_[i] && ready(i) > done(i); }
  // Grows with every byte that is done.
  [[nodiscard]] std::uint64_t progress() const { return progress_; }

 private:
  struct Dependent {
    std::uint32_t instruction;
    bool segmentwise;
  };
  void complete(std::uint32_t i);
  [[nodiscard]] std::uint64_t allowed_by_dependencies(std::uint32_t i) const;
  [[nodiscard]] bool waits_for_whole(std::uint32_t i, bool segmentwise) const { return !segmentwise || total_[i] == 0; }

  plan::Program const& program_;
  std::vector<std::uint64_t> total_;
  std::vector<std::uint64_t> done_;
  std::vector<FlowLimit> flow_limits_;
  std::vector<std::uint32_t> waits_;  // dependencies to be completed as a whole
  std::vector<Dependent> dependents_;
  std::vector<std::uint32_t> dependents_begin_;
  std::vector<std::uint32_t> ahead_, behind_;  // of lags_, in which an instruction is the one or the other; or none
  IndexQueue woken_;
  std::vector<bool> is_woken_;
  std::uint32_t completed_ = 0;
  std::uint64_t progress_ = 0;
  Timeline* const timeline_;
};

}  // namespace chorus::engine
