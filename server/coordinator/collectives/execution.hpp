// One collective from its place in the queue to its end: admission, plan, launch, commit or abort.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/runtime/condition.hpp"
#include "base/runtime/task_group.hpp"
#include "server/coordinator/admission/order.hpp"
#include "server/coordinator/admission/planner.hpp"
#include "server/coordinator/collectives/collective_history.hpp"
#include "server/coordinator/collectives/group_statistics.hpp"
#include "server/coordinator/collectives/lock_table.hpp"
#include "server/coordinator/collectives/rank_tensors.hpp"
#include "server/coordinator/collectives/records.hpp"
#include "server/coordinator/collectives/run_ranks.hpp"
#include "server/coordinator/diagnosis/blame.hpp"
#include "server/coordinator/groups/groups.hpp"
#include "server/coordinator/membership/worker_client.hpp"

namespace chorus::coordinator {

// Objects that all executions share; they outlive the executions.
struct ExecutionTools {
  boost::asio::any_io_executor executor;
  WorkerClient& workers;
  Planner& planner;
  Groups const& groups;
  LockTable& locks;
  http::Condition& locks_changed;
  CollectiveHistory& collective_history;
  GroupStatistics& group_statistics;
  Random random;
};

// Waiting times beyond the deadlines that the workers were told.
struct ExecutionPatience {
  std::chrono::milliseconds admission{5000};  // for the answers to HEAD, within the deadline
  std::chrono::milliseconds report{1000};     // after the deadline, for reports about the awaited ranks
  std::chrono::milliseconds abort{2000};      // for the ranks to stop
  std::chrono::milliseconds commit{5000};
  std::chrono::milliseconds next_epoch{15000};      // for the next epoch of a group that may shrink
  std::chrono::milliseconds reconciliation{10000};  // after a restart: for workers that neither answer nor refuse
};

class Execution {
 public:
  // `launch` admits by the cached metadata of the tensors if they were right before; the other modes ask the workers.
  enum class Mode : std::uint8_t { launch, launch_asking, validate_only };

  // `group`: snapshot from the time of the request, usable then. The collective fails at the deadline. If the request
  // has no timeout, the deadline is set again when the collective is planned, from the group's statistics.
  Execution(ExecutionTools const& tools, ExecutionPatience patience, std::shared_ptr<Record> record, Order order,
            GroupSnapshot group, Mode mode, TimePoint deadline);

  // Runs once, to the end, within the request's timeout and the patience above; ended early only by cancel(). Its owner
  // joins it. Returns the problem if a member was lost and may_go_on(): the record has then not ended, and the owner
  // calls end(), or superseded() when another execution has taken over the record.
  boost::asio::awaitable<std::optional<http::Problem>> run();
  void end(std::optional<http::Problem> problem);
  void superseded();

  // True if run() ended because cached metadata were wrong or a worker was not there. No rank has changed anything. The
  // place in the queue is kept for another execution that asks the workers. False after a cancellation.
  [[nodiscard]] bool mistaken() const { return mistaken_; }
  void take_place_of(Execution& mistaken);

  // False if the commit has begun, which is too late.
  bool cancel(http::Problem why);
  // An incarnation is gone, and with it its rank here, if it has one.
  void worker_lost(std::string const& worker, std::string const& incarnation, std::string const& why);

  // Notified when the state of this execution or its record has changed.
  [[nodiscard]] http::Condition& changed() { return changed_; }
  // True while it waits for another collective on the same tensor; its admission may take long.
  [[nodiscard]] bool in_line() const { return in_line_; }
  [[nodiscard]] bool done() const { return done_; }
  [[nodiscard]] Record const& record() const { return *record_; }
  // Ranks whose worker refused a connection, or whose connection broke.
  [[nodiscard]] std::vector<std::uint32_t> const& broken_ranks() const { return broken_; }
  [[nodiscard]] api::Group const& group() const { return group_; }
  [[nodiscard]] GroupSnapshot const& snapshot() const { return snapshot_; }
  [[nodiscard]] Order const& order() const { return order_; }
  [[nodiscard]] TimePoint deadline() const { return deadline_; }
  // Time from its creation to its launch; empty if it was not launched.
  [[nodiscard]] std::optional<double> waited_seconds() const { return waited_seconds_; }
  [[nodiscard]] std::optional<http::Problem> const& cancelled() const { return cancelled_; }

  // The ranks that it waits for, and since when: for their answers at admission or commit, or for the ends of their
  // runs. Empty while it waits for no rank.
  struct Standing {
    TimePoint since;  // when the stage began or the last rank ended
    std::vector<std::uint32_t> awaited;
    bool runs = false;  // the workers of the ranks can be asked for their progress
  };
  [[nodiscard]] std::optional<Standing> standing() const;

 private:
  using Stage = boost::asio::awaitable<std::optional<http::Problem>>;
  enum class Waits : std::uint8_t { for_nobody, for_tensors, for_runs, for_commits };

  Stage stages();
  Stage wait_in_line();
  Stage admit();
  Stage plan();
  Stage launch();
  Stage commit();

  boost::asio::awaitable<void> ask_for_tensor(std::uint32_t rank, TimePoint deadline);
  boost::asio::awaitable<void> run_rank(std::uint32_t rank, api::RunRequest request, TimePoint deadline);
  boost::asio::awaitable<void> abort_rank(std::uint32_t rank, TimePoint deadline);
  boost::asio::awaitable<void> commit_rank(std::uint32_t rank, TimePoint deadline);
  boost::asio::awaitable<void> abort_all();

  [[nodiscard]] http::Problem refused(std::uint32_t rank, http::ProblemCode code, std::string const& why) const;
  [[nodiscard]] std::uint32_t ranks() const { return static_cast<std::uint32_t>(group_.members.size()); }
  void give_time();
  void learn();
  void settle(RankEnding::Kind kind, std::uint32_t rank, http::Problem problem);
  void wait_from_now_on(Waits what) {
    waits_ = what;
    waits_since_ = std::chrono::steady_clock::now();
  }
  [[nodiscard]] bool launches() const { return mode_ != Mode::validate_only; }
  [[nodiscard]] bool failing() const { return cancelled_ || lost_ || failures_ > 0; }
  // True if the group may shrink, the inputs of the ranks are intact, and time is left.
  [[nodiscard]] bool may_go_on(http::Problem const& problem) const;

  ExecutionTools const& tools_;
  ExecutionPatience const patience_;
  std::shared_ptr<Record> const record_;
  Order const order_;
  GroupSnapshot const snapshot_;
  api::Group const& group_;  // refers into snapshot_
  Mode const mode_;
  http::Condition changed_;
  http::TaskGroup calls_;
  TimePoint begun_;  // taken over by take_place_of()
  TimePoint deadline_;
  RunRanks run_ranks_;  // of the wish; once planned, of the compression that was decided for
  std::optional<double> waited_seconds_;
  std::optional<LockTable::Ticket> ticket_;

  bool in_line_ = false;
  Waits waits_ = Waits::for_nobody;
  TimePoint waits_since_;
  bool committing_ = false;
  bool done_ = false;
  std::optional<http::Problem> cancelled_;
  std::optional<http::Problem> lost_;  // the loss of a member before the launch
  std::size_t pending_ = 0;            // unanswered calls of the current stage
  std::size_t failures_ = 0;           // ranks that ended without success
  RankTensors tensors_;
  bool contradicted_ = false;  // a run could not begin: the cache was wrong, or a worker is not there
  bool mistaken_ = false;
  Planner::Question question_;  // with the planner's answer in chosen_
  plan::Spec chosen_;
  std::vector<bool> settled_;
  std::vector<RankEnding> endings_;  // in the order in which they became known
  std::vector<std::uint32_t> broken_;
  std::vector<std::optional<http::Checked<std::uint64_t>>> commits_;
};

}  // namespace chorus::coordinator
