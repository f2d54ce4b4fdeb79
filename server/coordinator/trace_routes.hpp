// GET /v1/collectives/{id}/trace: asks the workers for their flights of a run, and draws them on one clock.
#pragma once

#include <memory>
#include <vector>

#include "http/condition.hpp"
#include "http/router.hpp"
#include "server/coordinator/cluster.hpp"
#include "server/coordinator/collectives.hpp"
#include "server/coordinator/trace.hpp"
#include "server/coordinator/worker_client.hpp"

namespace chorus::coordinator {

// On the executor's thread. Everything that it refers to outlives the server's stop().
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
