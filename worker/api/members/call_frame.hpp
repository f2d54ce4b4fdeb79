// What comes before and after each call of a member: the members meet before the first, a failure ends the epoch, and
// the call is counted.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "metrics/runs/run_ledger.hpp"
#include "worker/api/joined_group.hpp"
#include "worker/api/members/epoch_end.hpp"
#include "worker/engine/groups/group.hpp"

namespace chorus::embedded {

// On one's turn, but for the numbers, which any thread may read.
class CallFrame {
 public:
  // ranks: of the group. The references outlive the object.
  CallFrame(Group& group, std::uint32_t ranks, EpochEnd& end, metrics::RunLedger& ledger)
      : group_(group), ranks_(ranks), end_(end), ledger_(ledger) {}
  CallFrame(CallFrame const&) = delete;
  CallFrame& operator=(CallFrame const&) = delete;

  // Returns what is left of the timeout when everybody has met.
  [[nodiscard]] Result<std::chrono::milliseconds> meet(std::chrono::milliseconds timeout);
  void begun(Op op) { ledger_.begun(op); }
  // Completes `run` by the result.
  void count(metrics::FinishedRun& run, engine::RunResult const& result);
  [[nodiscard]] Status finish(engine::RunResult result);

  // Of calls without a root that have ended well; the time of a call is there before it is counted.
  [[nodiscard]] std::uint64_t calls() const { return calls_.load(std::memory_order_acquire); }
  [[nodiscard]] std::chrono::nanoseconds time() const {
    return std::chrono::nanoseconds(calls_ns_.load(std::memory_order_relaxed));
  }

 private:
  Group& group_;
  std::uint32_t const ranks_;
  EpochEnd& end_;
  metrics::RunLedger& ledger_;
  bool has_met_ = false;
  std::atomic<std::uint64_t> calls_{0}, calls_ns_{0};
};

}  // namespace chorus::embedded
