// The whole coordinator: makes its parts and connects them.
#pragma once

#include <spdlog/logger.h>

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <optional>

#include "base/runtime/loop_lag.hpp"
#include "base/runtime/memory_limit.hpp"
#include "http/client/client.hpp"
#include "http/server/security.hpp"
#include "http/server/server.hpp"
#include "server/coordinator/membership/lease_connections.hpp"
#include "server/coordinator/observability/stall_inspector.hpp"
#include "server/coordinator/observability/trace_routes.hpp"
#include "server/coordinator/routes/routes.hpp"
#include "server/coordinator/routes/routes_status.hpp"

namespace chorus::coordinator {

struct CoordinatorOptions {
  model::Constants constants = model::Constants::defaults();  // for the choice of algorithms
  std::chrono::milliseconds lease{5000};
  ClusterPatience cluster;
  ExecutionPatience execution;
  StallPatience stalls;
  RecordLimits records;
  DirectoryPatience directory;
  Checkpoints::Schedule checkpoints;
  JournalPatience journal;
  EventLimits events;
  SurveyPatience survey;
  std::vector<api::Setting> settings;                     // only for display
  std::string url;                                        // to which standbys redirect; "": there are none
  http::MemoryLimit memory;                               // of the process
  std::optional<double> process_start_seconds;            // since 1970; none: now
  std::function<metrics::LeadershipScrape()> leadership;  // for /metrics; null: the only coordinator
  Failpoint failpoint;                                    // for tests
  bool has_threads = true;  // false: all work runs on the executor, for tests that control the time
  // Executor on which the calls of the journal's store block; empty: as `has_threads` says.
  boost::asio::any_io_executor store_executor;
  http::ServerLimits http;
  http::SecurityOptions security;
};

// One thread runs the executor and makes every call.
class Coordinator {
 public:
  // Without a journal all state is lost when the process ends.
  Coordinator(boost::asio::any_io_executor executor, CoordinatorOptions options, std::unique_ptr<Store> journal,
              Random random, std::shared_ptr<spdlog::logger> log);
  ~Coordinator();  // after stop(), or without a successful start()
  Coordinator(Coordinator const&) = delete;
  Coordinator& operator=(Coordinator const&) = delete;

  // "https" or "http".
  [[nodiscard]] std::string_view scheme() const { return security_.scheme(); }

  // Restores the state from the journal, serves, and watches leases. Returns the port. Called once. Errors:
  // JournalErrc, HttpErrc::bind_failed, AuthErrc.
  [[nodiscard]] Result<std::uint16_t> start(std::string const& host, std::uint16_t port);

  // Ends readiness and refuses new collectives; lets running ones end until `until`, then cancels them; writes the
  // journal; ends the event streams; closes every connection.
  boost::asio::awaitable<void> stop(TimePoint until);

  // Ends readiness and refuses new collectives.
  void drain();

  // Drains, and writes the rest of the journal, before another coordinator takes over. Collectives that still run at
  // `until` are left to it.
  boost::asio::awaitable<void> hand_over(TimePoint until);

 private:
  [[nodiscard]] Status restore();
  void tell(char const* type);
  [[nodiscard]] std::string metrics_text() const;

  std::shared_ptr<spdlog::logger> log_;
  std::optional<double> const checkpoint_interval_s_;
  http::MemoryLimit const memory_;
  std::function<metrics::LeadershipScrape()> const leadership_;
  bool draining_ = false;
  bool was_unclean_ = false;  // the previous process ended without stop()
  metrics::CoordinatorMetrics metrics_;
  http::Security security_;
  http::Client client_;
  WorkerClient workers_;
  Journal journal_;
  Events events_;
  CollectiveHistory collective_history_;
  Planner planner_;
  GroupStatistics group_statistics_;
  LockTable locks_;
  http::Condition locks_changed_;
  Cluster cluster_;
  Collectives collectives_;
  StallInspector stall_inspector_;
  ParameterDirectory parameters_;
  Checkpoints checkpoints_;
  Survey survey_;
  Demo demo_;
  LeaseConnections lease_connections_;
  WorkerRoutes worker_routes_;
  http::Once once_;
  GroupRoutes group_routes_;
  CollectiveRoutes collective_routes_;
  TraceRoutes trace_routes_;
  ParameterRoutes parameter_routes_;
  EventRoutes event_routes_;
  SimulationRoutes simulation_routes_;
  ServiceRoutes service_routes_;
  StatusRoutes status_routes_;
  http::Router router_;
  http::Server server_;
  http::LoopLag lag_;
};

}  // namespace chorus::coordinator
