// What the parts of a cluster work with.
#pragma once

#include <spdlog/logger.h>

#include <boost/asio/any_io_executor.hpp>

#include "base/runtime/condition.hpp"
#include "metrics/coordinator_metrics.hpp"
#include "server/coordinator/admission/planner.hpp"
#include "server/coordinator/collectives/group_statistics.hpp"
#include "server/coordinator/collectives/lock_table.hpp"
#include "server/coordinator/collectives/records.hpp"
#include "server/coordinator/events/events.hpp"
#include "server/coordinator/journal/journal.hpp"
#include "server/coordinator/membership/worker_client.hpp"

namespace chorus::coordinator {

// The objects outlive the cluster.
struct ClusterTools {
  boost::asio::any_io_executor executor;
  WorkerClient& workers;
  Planner& planner;
  LockTable& locks;  // serialise the changes of one group
  http::Condition& locks_changed;
  metrics::CoordinatorMetrics& metrics;
  Journal& journal;
  Events& events;
  GroupStatistics& group_statistics;
  spdlog::logger& log;
  Random random;
};

}  // namespace chorus::coordinator
