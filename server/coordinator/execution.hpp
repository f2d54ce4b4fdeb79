// One collective from its place in the line to its end: admission, plan, launch, commit or abort.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/condition.hpp"
#include "http/task_group.hpp"
#include "server/coordinator/blame.hpp"
#include "server/coordinator/chronicle.hpp"
#include "server/coordinator/groups.hpp"
#include "server/coordinator/habits.hpp"
#include "server/coordinator/lock_table.hpp"
#include "server/coordinator/order.hpp"
#include "server/coordinator/planner.hpp"
#include "server/coordinator/records.hpp"
#include "server/coordinator/run_ranks.hpp"
#include "server/coordinator/worker_client.hpp"

namespace chorus::coordinator {

// What executions share; all of it outlives them.
struct ExecutionTools {
  boost::asio::any_io_executor executor;
  WorkerClient& workers;
  Planner& planner;
  Groups const& groups;
  LockTable& locks;
  http::Condition& locks_changed;
  Chronicle& chronicle;
  Habits& habits;
  Random random;
};

// How long to wait beyond what the workers were told.
struct ExecutionPatience {
  std::chrono::milliseconds admission{5000};  // for the answers to HEAD, within the deadline
  std::chrono::milliseconds report{1000};     // after the deadline: survivors report whom they waited for
  std::chrono::milliseconds abort{2000};      // for the ranks to stop
  std::chrono::milliseconds commit{5000};
  std::chrono::milliseconds next_epoch{15000};      // for a group that may shrink to do so
  std::chrono::milliseconds reconciliation{10000};  // after a restart: for workers that neither answer nor refuse
};

class Execution {
 public:
  // `launch` goes by what is known of the tensors, where it has come true before; the others ask.
  enum class Mode : std::uint8_t { launch, launch_asking, validate_only };

  // `group` is as it stood when the collective was asked for, and was usable. At the deadline it fails; if the request
  // has no timeout it gets another one when it is planned, as the group's habits are.
  Execution(ExecutionTools const& tools, ExecutionPatience patience, std::shared_ptr<Record> record, Order order,
            GroupSnapshot group, Mode mode, TimePoint deadline);

  // Runs once, to the end: it is not cancelled from outside but by cancel(), and ends within the request's timeout and
  // the patience above. Its owner joins it. Gives the problem if the record has not ended, because a member was lost
  // and may_go_on(): the owner ends this execution by end(), or by superseded() when another one has the record.
  boost::asio::awaitable<std::optional<http::Problem>> run();
  void end(std::optional<http::Problem> problem);
  void superseded();

  // run() has ended so: what was known of the tensors was not so, or a worker was not there. Nothing has changed on any
  // rank, and the place in the line is kept for another execution that asks. Not when it was cancelled.
  [[nodiscard]] bool mistaken() const { return mistaken_; }
  void take_place_of(Execution& mistaken);

  // False if it is too late: the commit has begun.
  bool cancel(http::Problem why);
  // That incarnation is gone, and with it the rank that it has here, if any.
  void worker_lost(std::string const& worker, std::string const& incarnation, std::string const& why);

  // Something above or in the record has changed.
  [[nodiscard]] http::Condition& changed() { return changed_; }
  // Waits for another collective on the same tensor: its admission may take long.
  [[nodiscard]] bool in_line() const { return in_line_; }
  [[nodiscard]] bool done() const { return done_; }
  [[nodiscard]] Record const& record() const { return *record_; }
  // Ranks whose worker refused a connection, or whose connection broke.
  [[nodiscard]] std::vector<std::uint32_t> const& broken_ranks() const { return broken_; }
  [[nodiscard]] api::Group const& group() const { return group_; }
  [[nodiscard]] GroupSnapshot const& snapshot() const { return snapshot_; }
  [[nodiscard]] Order const& order() const { return order_; }
  [[nodiscard]] TimePoint deadline() const { return deadline_; }
  // From when it was made until it was launched, if it was.
  [[nodiscard]] std::optional<double> waited_seconds() const { return waited_seconds_; }
  [[nodiscard]] std::optional<http::Problem> const& cancelled() const { return cancelled_; }

  // Ranks that it waits for and since when: for their answer at admission or commit, or for the end of their runs.
  // Nothing while it waits for nobody.
  struct Standing {
    TimePoint since;  // the stage began, or a rank has ended
    std::vector<std::uint32_t> awaited;
    bool runs = false;  // their workers can be asked where they stand
  };
  [[nodiscard]] std::optional<Standing> standing() const;

 private:
  using Stage = boost::asio::awaitable<std::optional<http::Problem>>;
  enum class Waits : std::uint8_t { for_nobody, for_looks, for_runs, for_commits };

  Stage stages();
  Stage wait_in_line();
  Stage admit();
  Stage plan();
  Stage launch();
  Stage commit();

  boost::asio::awaitable<void> look_at_rank(std::uint32_t rank, TimePoint deadline);
  boost::asio::awaitable<void> run_rank(std::uint32_t rank, api::RunRequest request, TimePoint deadline);
  boost::asio::awaitable<void> abort_rank(std::uint32_t rank, TimePoint deadline);
  boost::asio::awaitable<void> commit_rank(std::uint32_t rank, TimePoint deadline);
  boost::asio::awaitable<void> abort_all();

  // False if it has to be asked.
  [[nodiscard]] bool admit_as_known();
  [[nodiscard]] AdmissionQuestion admission_question() const;
  [[nodiscard]] http::Problem unanswered(std::uint32_t rank, Error const& error);
  [[nodiscard]] http::Problem refused(std::uint32_t rank, http::ProblemCode code, std::string const& why) const;
  [[nodiscard]] std::uint32_t ranks() const { return static_cast<std::uint32_t>(group_.members.size()); }
  [[nodiscard]] std::string title(std::uint32_t rank) const;
  void give_time();
  void learn();
  void learn_tensors(std::vector<std::uint64_t> const& versions);
  void settle(RankEnding::Kind kind, std::uint32_t rank, http::Problem problem);
  void wait_from_now_on(Waits what);
  [[nodiscard]] bool launches() const { return mode_ != Mode::validate_only; }
  [[nodiscard]] bool failing() const { return cancelled_ || lost_ || failures_ > 0; }
  // The group may shrink, what the ranks brought is intact, and there is time.
  [[nodiscard]] bool may_go_on(http::Problem const& problem) const;

  ExecutionTools const& tools_;
  ExecutionPatience const patience_;
  std::shared_ptr<Record> const record_;
  Order const order_;
  GroupSnapshot const snapshot_;
  api::Group const& group_;  // of it
  Mode const mode_;
  http::Condition changed_;
  http::TaskGroup calls_;
  TimePoint begun_;  // or the one whose place it has
  TimePoint deadline_;
  RunRanks const run_ranks_;
  std::optional<double> waited_seconds_;
  std::optional<LockTable::Ticket> ticket_;

  bool in_line_ = false;
  Waits waits_ = Waits::for_nobody;
  TimePoint waits_since_;
  bool committing_ = false;
  bool done_ = false;
  std::optional<http::Problem> cancelled_;
  std::optional<http::Problem> lost_;  // a member, before the launch
  std::size_t pending_ = 0;            // calls of the present stage that have not been answered
  std::size_t failures_ = 0;           // endings that are not successes
  std::vector<std::optional<http::Checked<RankTensor>>> looks_;
  std::vector<std::optional<RankTensor>> tensors_;  // by rank, as they were admitted
  std::optional<Admitted> admitted_;
  bool went_by_known_ = false;  // nobody was asked
  bool came_true_ = false;      // what was known, as the answers showed
  bool contradicted_ = false;   // what was known, or that all are there, by a run that could not begin
  bool mistaken_ = false;
  Planner::Question question_;  // and what the planner answered
  plan::Spec chosen_;
  std::vector<bool> settled_;
  std::vector<RankEnding> endings_;  // in the order in which they became known
  std::vector<std::uint32_t> broken_;
  std::vector<std::optional<http::Checked<std::uint64_t>>> commits_;
};

}  // namespace chorus::coordinator
