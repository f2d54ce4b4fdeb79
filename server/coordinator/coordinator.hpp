// The coordinator as a whole: its parts and how they are wired.
#pragma once

#include <spdlog/logger.h>

#include <boost/asio/any_io_executor.hpp>
#include <memory>

#include "http/auth/security.hpp"
#include "http/client.hpp"
#include "http/loop_lag.hpp"
#include "http/server.hpp"
#include "server/coordinator/lease_connections.hpp"
#include "server/coordinator/routes.hpp"
#include "server/coordinator/routes_status.hpp"
#include "server/coordinator/stall_inspector.hpp"
#include "server/coordinator/trace_routes.hpp"

namespace chorus::coordinator {

struct CoordinatorOptions {
  model::Constants constants = model::Constants::defaults();  // by which algorithms are chosen
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
  std::vector<api::Setting> settings;  // shown, nothing more
  Failpoint failpoint;                 // for tests
  bool has_threads = true;             // false: everything is done on the executor, for tests that own the time
  http::ServerLimits http;
  http::SecurityOptions security;
};

// One thread runs the executor and makes every call.
class Coordinator {
 public:
  // Without a journal everything is forgotten when the process ends.
  Coordinator(boost::asio::any_io_executor executor, CoordinatorOptions options, std::unique_ptr<JournalFile> journal,
              Random random, std::shared_ptr<spdlog::logger> log);
  ~Coordinator();  // after stop(), or without a successful start()
  Coordinator(Coordinator const&) = delete;
  Coordinator& operator=(Coordinator const&) = delete;

  // "https" or "http".
  [[nodiscard]] std::string_view scheme() const { return security_.scheme(); }

  // Takes up what the journal has kept, serves and watches leases. Gives the port. Once. Errors: JournalErrc,
  // HttpErrc::bind_failed, AuthErrc.
  [[nodiscard]] Result<std::uint16_t> start(std::string const& host, std::uint16_t port);

  // Is not ready any more and refuses new collectives, lets those that run end until `until`, cancels the others,
  // writes the journal, ends the streams of events, closes every connection.
  boost::asio::awaitable<void> stop(TimePoint until);

 private:
  [[nodiscard]] Status restore();
  void tell(char const* type);
  [[nodiscard]] std::string metrics_text() const;

  std::shared_ptr<spdlog::logger> log_;
  std::optional<double> const checkpoint_interval_s_;
  bool draining_ = false;
  bool was_unclean_ = false;  // the last life ended without a goodbye
  metrics::CoordinatorMetrics metrics_;
  http::Security security_;
  http::Client client_;
  WorkerClient workers_;
  Journal journal_;
  Events events_;
  Chronicle chronicle_;
  Planner planner_;
  Habits habits_;
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
