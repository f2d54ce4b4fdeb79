// What comes before and after each call of a member: the members meet before the first, a failure ends the epoch, and
// the call is counted.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <system_error>

#include "metrics/runs/run_ledger.hpp"
#include "worker/api/joined_group.hpp"
#include "worker/api/members/buffers.hpp"
#include "worker/api/members/epoch_end.hpp"
#include "worker/engine/groups/group.hpp"
#include "worker/tensors/errc.hpp"

namespace chorus::embedded {

// On one's turn, but for the numbers, which any thread may read.
class CallFrame {
 public:
  // The references outlive the object.
  CallFrame(Group& group, Place place, EpochEnd& end, metrics::RunLedger& ledger)
      : group_(group), place_(place), end_(end), ledger_(ledger) {}
  CallFrame(CallFrame const&) = delete;
  CallFrame& operator=(CallFrame const&) = delete;

  // Returns the status of `call`. An exception of the call, such as std::bad_alloc, ends the epoch: this member may not
  // have counted the call, so that its next one would meet this one of the other members.
  template <class Call>
  [[nodiscard]] Status attempt(Call const& call) {
    try {
      return call();
    } catch (std::bad_alloc const&) {
      return give_up(tensors::TensorErrc::out_of_memory, "there was no memory for a call");
    } catch (std::exception const& e) {
      return give_up(std::make_error_code(std::errc::state_not_recoverable), e.what());
    }
  }

  // Returns what is left of the timeout when everybody has met.
  [[nodiscard]] Result<std::chrono::milliseconds> meet(std::chrono::milliseconds timeout);
  void begun(Op op) {
    ledger_.begun(op);
    begun_ = op;
  }
  // Completes `run` by the result.
  void count(metrics::FinishedRun& run, engine::RunResult const& result);
  [[nodiscard]] Status finish(engine::RunResult result);

  // Of calls without a root that have ended well; the time of a call is there before it is counted.
  [[nodiscard]] std::uint64_t calls() const { return calls_.load(std::memory_order_acquire); }
  [[nodiscard]] std::chrono::nanoseconds time() const {
    return std::chrono::nanoseconds(calls_ns_.load(std::memory_order_relaxed));
  }

 private:
  Status give_up(std::error_code code, char const* why) noexcept;

  Group& group_;
  Place const place_;
  EpochEnd& end_;
  metrics::RunLedger& ledger_;
  bool has_met_ = false;
  std::optional<Op> begun_;  // and not counted yet
  std::atomic<std::uint64_t> calls_{0}, calls_ns_{0};
};

}  // namespace chorus::embedded
