// Looks at collectives that run and asks their workers where they stand; says whom those wait for that do not move.
#pragma once

#include <spdlog/logger.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "http/condition.hpp"
#include "http/task_group.hpp"
#include "metrics/coordinator_metrics.hpp"
#include "server/coordinator/chronicle.hpp"
#include "server/coordinator/collectives.hpp"
#include "server/coordinator/stall.hpp"
#include "server/coordinator/worker_client.hpp"

namespace chorus::coordinator {

struct StallPatience {
  std::chrono::milliseconds stall{2000};  // without progress
  std::chrono::milliseconds every{500};   // that it looks again
  std::chrono::milliseconds answer{500};  // by a worker; later it is silent
};

// On the executor's thread. What the tools refer to outlives this; the collectives are stopped before.
class StallInspector {
 public:
  struct Tools {
    boost::asio::any_io_executor executor;
    WorkerClient& workers;
    Collectives& collectives;
    Chronicle& chronicle;
    metrics::CoordinatorMetrics& metrics;
    spdlog::logger& log;
  };

  StallInspector(Tools tools, StallPatience patience)
      : tools_(std::move(tools)), patience_(patience), tasks_(tools_.executor), ticks_(tools_.executor) {}

  void start() { tasks_.spawn("stall inspector", watch()); }
  boost::asio::awaitable<void> stop();

 private:
  // A look at one execution; shared with the calls that it makes.
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
  std::map<std::string, std::size_t> counts_;  // by operation, as the metrics have them
  std::map<std::string, bool> looked_at_;      // right now, by id
  http::TaskGroup tasks_;
  http::Condition ticks_;
};

}  // namespace chorus::coordinator
