// The coordinator as a whole: its parts and how they are wired.
#pragma once

#include <spdlog/logger.h>

#include <boost/asio/any_io_executor.hpp>
#include <memory>

#include "http/client.hpp"
#include "http/server.hpp"
#include "server/coordinator/routes.hpp"

namespace chorus::coordinator {

struct CoordinatorOptions {
  model::Constants constants = model::Constants::defaults();  // by which algorithms are chosen
  std::chrono::milliseconds lease{5000};
  ClusterPatience cluster;
  ExecutionPatience execution;
  RecordLimits records;
  DirectoryPatience directory;
  Checkpoints::Schedule checkpoints;
  http::ServerLimits http;
};

// One thread runs the executor and makes every call.
class Coordinator {
 public:
  Coordinator(boost::asio::any_io_executor executor, CoordinatorOptions options, Random random,
              std::shared_ptr<spdlog::logger> log);
  ~Coordinator();  // after stop(), or without a successful start()
  Coordinator(Coordinator const&) = delete;
  Coordinator& operator=(Coordinator const&) = delete;

  // Serves and watches leases. Gives the port. Errors: HttpErrc::bind_failed.
  [[nodiscard]] Result<std::uint16_t> start(std::string const& host, std::uint16_t port);

  // Refuses new collectives, lets those that run end until `until`, cancels the others, closes every connection.
  boost::asio::awaitable<void> stop(TimePoint until);

 private:
  std::shared_ptr<spdlog::logger> log_;
  bool draining_ = false;
  metrics::CoordinatorMetrics metrics_;
  http::Client client_;
  WorkerClient workers_;
  Planner planner_;
  LockTable locks_;
  http::Condition locks_changed_;
  Cluster cluster_;
  Collectives collectives_;
  ParameterDirectory parameters_;
  Checkpoints checkpoints_;
  WorkerRoutes worker_routes_;
  GroupRoutes group_routes_;
  CollectiveRoutes collective_routes_;
  ParameterRoutes parameter_routes_;
  SimulationRoutes simulation_routes_;
  ServiceRoutes service_routes_;
  http::Router router_;
  http::Server server_;
};

}  // namespace chorus::coordinator
