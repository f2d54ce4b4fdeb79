// The collectives that run now: launched, watched, cancelled.
#pragma once

#include <spdlog/logger.h>

#include <map>
#include <memory>
#include <string>

#include "http/trace_context.hpp"
#include "metrics/coordinator_metrics.hpp"
#include "server/coordinator/execution.hpp"
#include "server/coordinator/reconciliation.hpp"

namespace chorus::coordinator {

class Collectives {
 public:
  struct Tools {
    ExecutionTools execution;
    metrics::CoordinatorMetrics& metrics;
    Journal& journal;
    spdlog::logger& log;
    // A worker whose connection broke: called with its id and incarnation.
    std::function<void(std::string const&, std::string const&)> suspect;
  };

  // What the tools refer to outlives this. One thread.
  Collectives(Tools tools, ExecutionPatience patience, RecordLimits limits);
  ~Collectives();  // after stop()
  Collectives(Collectives const&) = delete;
  Collectives& operator=(Collectives const&) = delete;

  // What the journal has kept; recover() goes on with what had not ended: what no worker had been told runs, the rest
  // is brought to one end. Both before the first launch, recover() on the executor.
  void restore(KeptState const& state);
  void recover();

  struct Launched {
    std::shared_ptr<Record> record;
    bool created = false;
  };
  // Checks, begins, and returns when admission and planning are over, or the collective waits in line for another one
  // on the same tensor; the record tells which. Problems as in order.hpp, groups.hpp and records.hpp; unavailable while
  // stopping.
  // `trace`: the one that the request belongs to, if any; workers are told.
  // `mode`: Execution::Mode::launch only if somebody waits for the end, who is told then what admission would have
  // refused. Problems of Journal::flush mean that it is not known to survive a crash: ask again.
  boost::asio::awaitable<http::Checked<Launched>> launch(Records::Name name, api::CollectiveRequest request,
                                                         std::optional<http::TraceContext> trace, Execution::Mode mode);

  // The same without launching, and without a trace in the list.
  boost::asio::awaitable<http::Checked<std::shared_ptr<Record>>> validate(api::CollectiveRequest request);

  // Returns when the collective has ended, or at `until`.
  boost::asio::awaitable<void> wait(std::shared_ptr<Record> record, TimePoint until);

  // Returns when it has ended. One that has ended or is being committed stays as it is.
  boost::asio::awaitable<void> cancel(std::shared_ptr<Record> record);

  void worker_lost(std::string const& worker, std::string const& incarnation, std::string const& why);

  [[nodiscard]] Records const& records() const { return records_; }
  // Those that run, by id.
  [[nodiscard]] std::map<std::string, std::shared_ptr<Execution>> const& under_way() const { return running_; }

  // Refuses launches from now on.
  void drain() { draining_ = true; }
  // Cancels what still runs at `until`, and returns when nothing runs. What is being reconciled is left to the journal.
  boost::asio::awaitable<void> stop(TimePoint until);

  // How many run, and how many wait to be launched, by operation.
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
  // The next attempt, in the group's next epoch; null if there is none, and then the record has ended.
  boost::asio::awaitable<std::shared_ptr<Execution>> begin_again(std::shared_ptr<Execution> failed,
                                                                 http::Problem problem);
  // The same launch, whose workers are asked what they hold.
  std::shared_ptr<Execution> ask_again(std::shared_ptr<Execution> mistaken);
  // Why nothing can be begun in the group as it stands: it is still the one that failed, or cannot be used.
  [[nodiscard]] http::Checked<Ready> next_epoch(Execution const& failed) const;
  boost::asio::awaitable<void> reconcile(std::shared_ptr<Reconciliation> reconciliation);
  void start(std::shared_ptr<Record> record, Ready ready, Execution::Mode mode);
  void resume(KeptCollective const& kept);
  void finished(Record const& record);
  void count(Execution const& execution);

  Tools const tools_;
  ExecutionPatience const patience_;
  Records records_;
  std::map<std::string, std::shared_ptr<Execution>> running_;           // by id
  std::map<std::string, std::shared_ptr<Reconciliation>> reconciling_;  // by id
  std::vector<std::pair<KeptCollective, bool>> unfinished_;             // of the last life; whether it was decided
  bool draining_ = false;
  http::Condition one_ended_;
  http::TaskGroup tasks_;
};

}  // namespace chorus::coordinator
