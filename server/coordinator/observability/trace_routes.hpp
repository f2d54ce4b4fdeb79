// GET /v1/collectives/{id}/trace: asks the workers for their records of a run, and draws them on one clock.
#pragma once

#include <memory>
#include <vector>

#include "base/runtime/condition.hpp"
#include "http/routing/router.hpp"
#include "server/coordinator/cluster/cluster.hpp"
#include "server/coordinator/collectives/collectives.hpp"
#include "server/coordinator/membership/worker_client.hpp"
#include "server/coordinator/observability/trace.hpp"

namespace chorus::coordinator {

// Used on the executor's thread. All referenced objects outlive the server's stop().
class TraceRoutes {
 public:
  TraceRoutes(boost::asio::any_io_executor executor, Collectives const& collectives, Cluster const& cluster,
              WorkerClient& workers)
      : executor_(executor), collectives_(collectives), cluster_(cluster), workers_(workers), tasks_(executor) {}

  void add_to(http::Router& router);
  boost::asio::awaitable<void> stop();

 private:
  struct Gathering;

  boost::asio::awaitable<http::Response> get(http::Request const& request);
  boost::asio::awaitable<void> gather(std::shared_ptr<Gathering> gathering, std::size_t index, std::string url,
                                      std::uint64_t run);

  boost::asio::any_io_executor executor_;
  Collectives const& collectives_;
  Cluster const& cluster_;
  WorkerClient& workers_;
  http::TaskGroup tasks_;
};

}  // namespace chorus::coordinator
