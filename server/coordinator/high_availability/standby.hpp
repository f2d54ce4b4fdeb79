// The HTTP service of a standby. /readyz names the leader, /metrics describes this process; any other request is
// redirected to the leader (307).
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/runtime/loop_lag.hpp"
#include "base/runtime/memory_limit.hpp"
#include "http/server/security.hpp"
#include "http/server/server.hpp"
#include "metrics/standby_metrics.hpp"
#include "server/coordinator/high_availability/election.hpp"

namespace chorus::coordinator {

struct StandbyOptions {
  http::SecurityOptions security;
  http::ServerLimits limits;
  double process_start_seconds = 0;                    // since 1970
  http::MemoryLimit memory;                            // of the process
  std::shared_ptr<metrics::LogCounter const> logged;   // null: lines are not counted
  std::function<metrics::LeadershipScrape()> scraped;  // state of leadership and of etcd, for /metrics
};

// Owned by Leading; called on the executor's one thread.
class Standby {
 public:
  // The election outlives it.
  Standby(boost::asio::any_io_executor executor, Election const& election, StandbyOptions options);

  // Errors: AuthErrc, HttpErrc::bind_failed.
  [[nodiscard]] Result<std::uint16_t> start(std::string const& host, std::uint16_t port);
  // Closes every connection; clients that connect again find the leader.
  boost::asio::awaitable<void> stop();
  [[nodiscard]] std::string_view scheme() const { return security_.scheme(); }

 private:
  boost::asio::awaitable<http::Response> alive(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> ready(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> show_metrics(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> lead_on(http::Request const& request, http::Body& body);
  [[nodiscard]] http::Problem without_leader() const;

  Election const& election_;
  http::MemoryLimit const memory_;
  std::function<metrics::LeadershipScrape()> const scraped_;
  metrics::StandbyMetrics metrics_;
  http::Security security_;
  http::Router router_;
  http::Server server_;
  http::LoopLag lag_;
};

}  // namespace chorus::coordinator
