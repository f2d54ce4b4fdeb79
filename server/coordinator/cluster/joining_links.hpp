// Measures links of workers that join, for the planner's model of the network.
#pragma once

#include <spdlog/logger.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <vector>

#include "base/runtime/condition.hpp"
#include "server/coordinator/admission/planner.hpp"
#include "server/coordinator/collectives/lock_table.hpp"
#include "server/coordinator/membership/membership.hpp"
#include "server/coordinator/membership/worker_client.hpp"

namespace chorus::coordinator {

// Used on one thread. The objects in the tools outlive its calls.
class JoiningLinks {
 public:
  struct Tools {
    boost::asio::any_io_executor executor;
    WorkerClient& workers;
    Membership const& membership;
    Planner& planner;
    spdlog::logger& log;
  };
  // patience: for one link.
  JoiningLinks(Tools tools, std::chrono::milliseconds patience)
      : tools_(std::move(tools)), patience_(patience), turn_over_(tools_.executor) {}
  JoiningLinks(JoiningLinks const&) = delete;
  JoiningLinks& operator=(JoiningLinks const&) = delete;

  // Measures one link of every level beyond the host, to the worker that joined first.
  boost::asio::awaitable<void> measure(Worker worker);

  // What was measured, the newest last.
  [[nodiscard]] std::vector<api::MeasuredLink> const& links() const { return links_; }

 private:
  class Turn;

  boost::asio::awaitable<bool> measure_link(Worker worker, Worker peer, Level level);
  [[nodiscard]] bool is_still_there(Worker const& worker) const;

  Tools const tools_;
  std::chrono::milliseconds const patience_;
  std::vector<api::MeasuredLink> links_;
  LockTable measuring_;  // by worker
  http::Condition turn_over_;
};

}  // namespace chorus::coordinator
