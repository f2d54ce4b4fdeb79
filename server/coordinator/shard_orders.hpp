// Orders to take shards, on their way to workers. A worker whose backups all take over at once is told of many shards
// in one request: what comes while a request is under way makes up the next one.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "http/condition.hpp"
#include "http/task_group.hpp"
#include "server/coordinator/worker_client.hpp"

namespace chorus::coordinator {

// On one thread. The workers outlive stop().
class ShardOrders {
 public:
  ShardOrders(boost::asio::any_io_executor executor, WorkerClient& workers);
  ShardOrders(ShardOrders const&) = delete;
  ShardOrders& operator=(ShardOrders const&) = delete;

  // What the worker at `url` said to this assignment, by the deadline. What may take long there, because a disk is read
  // or written or memory filled for it, goes in a request of its own, so that nobody waits for it.
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
  std::map<std::string, Outbox, std::less<>> outboxes_;  // by URL; there as long as somebody sends from it
  http::TaskGroup tasks_;
};

}  // namespace chorus::coordinator
