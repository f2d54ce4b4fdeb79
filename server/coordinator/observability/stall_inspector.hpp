// Asks the workers of running collectives for their progress, and reports stalls with the ranks that the others wait
// for.
#pragma once

#include <spdlog/logger.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "base/runtime/condition.hpp"
#include "base/runtime/task_group.hpp"
#include "metrics/coordinator_metrics.hpp"
#include "server/coordinator/collectives/collective_history.hpp"
#include "server/coordinator/collectives/collectives.hpp"
#include "server/coordinator/diagnosis/stall.hpp"
#include "server/coordinator/membership/worker_client.hpp"

namespace chorus::coordinator {

struct StallPatience {
  std::chrono::milliseconds stall{2000};  // time without progress that is a stall
  std::chrono::milliseconds every{500};   // interval of the checks
  std::chrono::milliseconds answer{500};  // for a worker's answer; a later one counts as silent
};

// Used on the executor's thread. The objects in the tools outlive this; the collectives are stopped before.
class StallInspector {
 public:
  struct Tools {
    boost::asio::any_io_executor executor;
    WorkerClient& workers;
    Collectives& collectives;
    CollectiveHistory& collective_history;
    metrics::CoordinatorMetrics& metrics;
    spdlog::logger& log;
  };

  StallInspector(Tools tools, StallPatience patience)
      : tools_(std::move(tools)), patience_(patience), tasks_(tools_.executor), ticks_(tools_.executor) {}

  void start() { tasks_.spawn("stall inspector", watch()); }
  boost::asio::awaitable<void> stop();

 private:
  // One check of one execution; shared with the calls that it makes.
  struct Inspection;
  struct Stalled {
    std::uint64_t run = 0;
    std::string op;
  };

  boost::asio::awaitable<void> watch();
  boost::asio::awaitable<void> inspect(std::shared_ptr<Execution> execution);
  boost::asio::awaitable<void> ask(std::shared_ptr<Inspection> inspection, std::size_t index, std::string url,
                                   std::uint64_t run);
  void conclude(Record& record, std::vector<RankLook> const& looks, double standing_s);
  void moves(Record& record);
  void forget(std::string const& id);
  void count();

  Tools const tools_;
  StallPatience const patience_;
  std::map<std::string, Stalled> stalled_;     // by id
  std::map<std::string, std::size_t> counts_;  // by operation, for the metrics
  std::map<std::string, bool> looked_at_;      // being checked now, by id
  http::TaskGroup tasks_;
  http::Condition ticks_;
};

}  // namespace chorus::coordinator
