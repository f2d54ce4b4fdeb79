// Sends assignments of shards to workers, many in one request: assignments that arrive during a request make up the
// next one. A worker whose backups all take over at once thus gets few requests.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/runtime/condition.hpp"
#include "base/runtime/task_group.hpp"
#include "server/coordinator/membership/worker_client.hpp"

namespace chorus::coordinator {

// Used on one thread. The workers outlive stop().
class ShardAssignments {
 public:
  ShardAssignments(boost::asio::any_io_executor executor, WorkerClient& workers);
  ShardAssignments(ShardAssignments const&) = delete;
  ShardAssignments& operator=(ShardAssignments const&) = delete;

  // Returns the answer of the worker at `url` to this assignment, by the deadline. An assignment that may take long,
  // because the worker uses a disk or fills memory for it, has a request of its own, so that no other waits for it.
  boost::asio::awaitable<WorkerClient::Said<bool>> assign(std::string url, api::ShardAssignment assignment,
                                                          http::TimePoint deadline);

  boost::asio::awaitable<void> stop();

 private:
  struct Order;
  using OrderPtr = std::shared_ptr<Order>;
  struct Outbox {
    std::deque<OrderPtr> waiting;
  };

  boost::asio::awaitable<void> send(std::string url);
  boost::asio::awaitable<void> send_each(std::string url, std::vector<OrderPtr> orders);
  [[nodiscard]] std::vector<OrderPtr> next_batch(Outbox& outbox) const;

  boost::asio::any_io_executor executor_;
  WorkerClient& workers_;
  std::map<std::string, Outbox, std::less<>> outboxes_;  // by URL; kept while a task sends from it
  http::TaskGroup tasks_;
};

}  // namespace chorus::coordinator
