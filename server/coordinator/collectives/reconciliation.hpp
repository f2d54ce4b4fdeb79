// Ends a collective whose coordinator died: asks every worker for the state of the run, then commits or aborts on all
// workers.
//
// If any rank has committed, or the decision to commit was durable, the result is committed everywhere. A durable
// decision does not count if a rank has dropped its result and none has committed. Everything else is aborted
// everywhere. No rank commits before the decision, so the decision also covers ranks that cannot be asked.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/runtime/condition.hpp"
#include "base/runtime/task_group.hpp"
#include "server/coordinator/collectives/execution.hpp"

namespace chorus::coordinator {

class Reconciliation {
 public:
  // The tools outlive it. Enters the queues of its tensors at once, so no other collective gets ahead. `record` has not
  // ended; `patience` limits the wait for workers that neither answer nor refuse.
  Reconciliation(ExecutionTools const& tools, std::chrono::milliseconds patience, std::shared_ptr<Record> record,
                 api::Group group, bool decided);

  // Runs once, to the end; its owner joins it. The record has then ended, unless give_up() came first.
  boost::asio::awaitable<void> run();

  // Called when the process stops: the rest is left to the next process.
  void give_up();

  [[nodiscard]] http::Condition& changed() { return changed_; }
  [[nodiscard]] bool done() const { return done_; }
  [[nodiscard]] Record const& record() const { return *record_; }
  [[nodiscard]] api::Group const& group() const { return group_; }
  [[nodiscard]] std::vector<std::uint32_t> const& broken_ranks() const { return broken_; }

 private:
  boost::asio::awaitable<void> ask(std::uint32_t rank);
  boost::asio::awaitable<void> commit(std::uint32_t rank);
  boost::asio::awaitable<void> abort(std::uint32_t rank);
  boost::asio::awaitable<void> all(boost::asio::awaitable<void> (Reconciliation::*step)(std::uint32_t));
  [[nodiscard]] bool is_to_be_committed() const;
  void succeed_or_fail();
  void fail_aborted();
  [[nodiscard]] http::Problem refused(std::uint32_t rank, http::ProblemCode code, std::string const& why) const;

  struct Rank {
    std::optional<api::RunStatus> status;  // the worker's answer
    std::string unheard;                   // why there is no answer
    std::optional<std::uint64_t> version;  // committed
    std::optional<http::Problem> refusal;  // refusal to commit
  };

  ExecutionTools const& tools_;
  std::chrono::milliseconds const patience_;
  std::shared_ptr<Record> const record_;
  api::Group const group_;
  bool const decided_;
  LockTable::Ticket const ticket_;
  TimePoint deadline_;
  std::vector<Rank> ranks_;
  std::vector<std::uint32_t> broken_;
  bool given_up_ = false;
  bool done_ = false;
  http::Condition changed_;
  http::TaskGroup calls_;
};

}  // namespace chorus::coordinator
