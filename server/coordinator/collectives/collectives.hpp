// Launches, watches and cancels the running collectives.
#pragma once

#include <spdlog/logger.h>

#include <map>
#include <memory>
#include <string>

#include "http/message/trace_context.hpp"
#include "metrics/coordinator_metrics.hpp"
#include "server/coordinator/collectives/execution.hpp"
#include "server/coordinator/collectives/reconciliation.hpp"

namespace chorus::coordinator {

class Collectives {
 public:
  struct Tools {
    ExecutionTools execution;
    metrics::CoordinatorMetrics& metrics;
    Journal& journal;
    spdlog::logger& log;
    // Called with the id and incarnation of a worker whose connection broke.
    std::function<void(std::string const&, std::string const&)> suspect;
  };

  // The objects in the tools outlive this. Used on one thread.
  Collectives(Tools tools, ExecutionPatience patience, RecordLimits limits);
  ~Collectives();  // after stop()
  Collectives(Collectives const&) = delete;
  Collectives& operator=(Collectives const&) = delete;

  // restore() takes the state of the journal. recover() then continues the unfinished collectives: those unknown to all
  // workers run, the others are reconciled. Both are called before the first launch, recover() on the executor.
  void restore(JournalState const& state);
  void recover();

  struct Launched {
    std::shared_ptr<Record> record;
    bool created = false;
  };
  // Checks and begins a collective. Returns when it is planned or waits for another collective on the same tensor; the
  // record tells which.
  // `trace`: trace context of the request, if any; passed on to the workers. `mode`: Execution::Mode::launch only if
  // the caller waits for the end and so hears of a late refusal.
  // Problems as in order.hpp, groups.hpp and records.hpp; unavailable while stopping. Problems of Journal::flush mean
  // that the launch might not survive a crash: the caller asks again.
  boost::asio::awaitable<http::Checked<Launched>> launch(Records::Name name, api::CollectiveRequest request,
                                                         std::optional<http::TraceContext> trace, Execution::Mode mode);

  // Checks and plans without launching. The record is not listed.
  boost::asio::awaitable<http::Checked<std::shared_ptr<Record>>> validate(api::CollectiveRequest request);

  // Returns when the collective has ended, or at `until`.
  boost::asio::awaitable<void> wait(std::shared_ptr<Record> record, TimePoint until);

  // Cancels and returns when the collective has ended. A collective that has ended or is being committed stays as it
  // is.
  boost::asio::awaitable<void> cancel(std::shared_ptr<Record> record);

  void worker_lost(std::string const& worker, std::string const& incarnation, std::string const& why);

  [[nodiscard]] Records const& records() const { return records_; }
  // The running collectives by id.
  [[nodiscard]] std::map<std::string, std::shared_ptr<Execution>> const& under_way() const { return running_; }

  // Refuses all later launches.
  void drain() { draining_ = true; }
  // Drains, and returns when no collective runs, or at `until`.
  boost::asio::awaitable<void> finish(TimePoint until);
  // Cancels the collectives that still run at `until`, and returns when none runs. Unfinished reconciliations are left
  // to the journal.
  boost::asio::awaitable<void> stop(TimePoint until);

  // Numbers of running and of waiting collectives by operation.
  struct Counts {
    std::map<std::string, std::size_t, std::less<>> active, queued;
  };
  [[nodiscard]] Counts counts() const;

 private:
  struct Ready {
    Order order;
    GroupSnapshot group;
  };
  [[nodiscard]] http::Checked<Ready> check(api::CollectiveRequest const& request) const;
  [[nodiscard]] std::shared_ptr<Execution> running(Record const& record) const;
  boost::asio::awaitable<void> execute(std::shared_ptr<Execution> execution, Execution::Mode mode);
  // Makes the next attempt in the group's next epoch. Returns null if there is none; then the record has ended.
  boost::asio::awaitable<std::shared_ptr<Execution>> begin_again(std::shared_ptr<Execution> failed,
                                                                 http::Problem problem);
  // Makes the same launch again, which asks the workers for their tensors.
  std::shared_ptr<Execution> ask_again(std::shared_ptr<Execution> mistaken);
  // Returns the problem if no attempt can begin: the group still has the failed epoch, or is unusable.
  [[nodiscard]] http::Checked<Ready> next_epoch(Execution const& failed) const;
  boost::asio::awaitable<void> reconcile(std::shared_ptr<Reconciliation> reconciliation);
  void start(std::shared_ptr<Record> record, Ready ready, Execution::Mode mode);
  void resume(JournalCollective const& kept);
  void finished(Record const& record);
  void count(Execution const& execution);

  Tools const tools_;
  ExecutionPatience const patience_;
  Records records_;
  std::map<std::string, std::shared_ptr<Execution>> running_;           // by id
  std::map<std::string, std::shared_ptr<Reconciliation>> reconciling_;  // by id
  std::vector<std::pair<JournalCollective, bool>> unfinished_;          // of the previous process; true: commit decided
  bool draining_ = false;
  http::Condition one_ended_;
  http::TaskGroup tasks_;
};

}  // namespace chorus::coordinator
