// The runs that the coordinator launched: started once, waited for by whoever asks, held until commit or abort.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "http/condition.hpp"
#include "http/task_group.hpp"
#include "worker/service/runner.hpp"

namespace chorus::service {

// On the control thread. The runner outlives stop(). A run lives independently of the request that asked for
// it: a client that goes away does not end it.
class RunBook {
 public:
  struct Limits {
    std::chrono::milliseconds hold{30000};  // beyond a run's deadline; then its result is dropped
    std::size_t remembered = 1024;          // ended runs, for requests that are repeated
  };

  RunBook(boost::asio::any_io_executor executor, Runner& runner, Limits limits);

  // Starts the run, or finds it, and gives its report when it has ended on this rank. `request` is the text that tells
  // whether a repetition is one. Problems: the runner's refusals (the run is then unknown, as if never asked for),
  // idempotency_reused, cancelled if it was aborted before it came, unavailable after drain().
  boost::asio::awaitable<http::Checked<api::RunReport>> put(RunOrder order, std::string worker, std::string request);

  // Gives the new version, each time. Problems: unknown_run, busy while it runs, cancelled, and why it failed; mismatch
  // if the tensor was changed meanwhile.
  boost::asio::awaitable<http::Checked<std::uint64_t>> commit(std::uint64_t run);

  // Ends the run, drops its result, or sees to it that it will not start. Problem mismatch if it was committed, or is
  // about to be.
  [[nodiscard]] std::optional<http::Problem> drop(std::uint64_t run);

  // What became of it; nothing if it never came, or ended long ago.
  [[nodiscard]] std::optional<api::RunStatus> status(std::uint64_t run) const;

  // From now on no new run. drained() returns when none runs or waits for its commit, or at the deadline.
  void drain() { draining_ = true; }
  boost::asio::awaitable<void> drained(std::chrono::steady_clock::time_point deadline);

  // Aborts what runs, drops what is held.
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
    std::optional<http::Problem> refusal;  // why it could not be
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
