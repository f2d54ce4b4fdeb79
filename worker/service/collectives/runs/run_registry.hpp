// Runs that the coordinator launched: each is started once, awaited by any request that asks, and held until commit or
// abort.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/runtime/condition.hpp"
#include "base/runtime/task_group.hpp"
#include "worker/service/collectives/runs/runner.hpp"

namespace chorus::service {

// Used on the control thread only. The runner outlives stop(). A run is independent of the request that launched it: it
// goes on when that client disconnects.
class RunRegistry {
 public:
  struct Limits {
    std::chrono::milliseconds hold{30000};  // beyond a run's deadline; then the result is dropped
    std::size_t remembered = 1024;          // ended runs, for repeated requests
  };

  RunRegistry(boost::asio::any_io_executor executor, Runner& runner, Limits limits);

  // Starts the run, or finds it, and returns its report when it has ended on this rank. `request`: text by which
  // repetitions are recognised. Problems: refusals of the runner (the run then stays unknown), idempotency_reused,
  // cancelled if the run was aborted before this request, unavailable after drain().
  boost::asio::awaitable<http::Checked<api::RunReport>> put(RunOrder order, std::string worker, std::string request);

  // Returns the new version, also when repeated. Problems: unknown_run, busy while the run goes on, cancelled, the
  // reason if the run failed; mismatch if the tensor was changed meanwhile.
  boost::asio::awaitable<http::Checked<std::uint64_t>> commit(std::uint64_t run);

  // Ends the run, drops its result, or prevents its start. Problem mismatch if it was committed, or is being committed.
  [[nodiscard]] std::optional<http::Problem> drop(std::uint64_t run);

  // State of the run; empty if it is unknown or ended long ago.
  [[nodiscard]] std::optional<api::RunStatus> status(std::uint64_t run) const;

  // Refuses new runs; drained() returns when none runs or waits for its commit, or at the deadline.
  void drain() { draining_ = true; }
  boost::asio::awaitable<void> drained(std::chrono::steady_clock::time_point deadline);

  // Aborts runs and drops held results.
  boost::asio::awaitable<void> stop();

 private:
  enum class State { running, held, committing, committed, failed, dropped };
  struct Record {
    explicit Record(boost::asio::any_io_executor executor) : changed(std::move(executor)) {}
    std::string request;
    State state = State::running;
    bool drop_asked = false;
    std::optional<http::Checked<api::RunReport>> outcome;
    HeldResult result;
    std::uint64_t version = 0;             // once committed
    std::optional<http::Problem> refusal;  // why the commit failed
    http::Condition changed;
  };
  using RecordPtr = std::shared_ptr<Record>;

  boost::asio::awaitable<void> live(std::uint64_t run, RecordPtr record, RunOrder order, std::string worker);
  boost::asio::awaitable<void> finish(std::uint64_t run, RecordPtr record);
  void abort(std::uint64_t run);
  void end(std::uint64_t run, Record& record, State state);
  [[nodiscard]] RecordPtr find(std::uint64_t run) const;

  boost::asio::any_io_executor executor_;
  Runner& runner_;
  Limits const limits_;
  std::map<std::uint64_t, RecordPtr> records_;
  std::deque<std::uint64_t> ended_;  // oldest first
  std::size_t open_ = 0;             // running or held
  bool draining_ = false;
  http::Condition closed_one_;
  http::TaskGroup tasks_;
};

}  // namespace chorus::service
