// The parameter server's half of a worker: its shards, the way to everybody else's, and the routes to both.
#pragma once

#include <spdlog/logger.h>

#include <boost/asio/thread_pool.hpp>
#include <memory>
#include <set>
#include <string>

#include "metrics/worker_metrics.hpp"
#include "worker/service/checkpoint_routes.hpp"
#include "worker/service/identity.hpp"
#include "worker/service/parameter_routes.hpp"
#include "worker/service/shard_routes.hpp"

namespace chorus::service {

// On the control thread. What it is given outlives it; stop() comes before the server's, destruction after it.
class ParameterService {
 public:
  struct Parts {
    boost::asio::any_io_executor executor;
    http::Client& client;
    http::MessageChecksums checksums;  // of what goes to other workers
    tensors::Pool& pool;
    devices::Gpus const* gpus;  // null: no shard lies on one
    Helper& helper;
    Identity const& identity;
    metrics::WorkerMetrics& metrics;
    std::string coordinator;
    std::string checkpoint_directory;  // "": no checkpoints
    std::string log_directory;         // "": no logs of pushes
    std::uint64_t log_snapshot_bytes;
    std::uint64_t fill_bytes_per_second;
    spdlog::logger& log;
  };
  explicit ParameterService(Parts parts);
  ~ParameterService();
  ParameterService(ParameterService const&) = delete;
  ParameterService& operator=(ParameterService const&) = delete;

  void add_to(http::Router& router);
  boost::asio::awaitable<void> stop();

  [[nodiscard]] parameters::ShardBook const& book() const { return book_; }

 private:
  [[nodiscard]] parameters::ShardEvents events();
  void suspect(std::string const& worker, std::string const& incarnation);
  boost::asio::awaitable<void> tell(std::string worker, std::string incarnation);
  boost::asio::awaitable<void> report_loss(std::string parameter, std::uint32_t shard);

  metrics::WorkerMetrics& metrics_;
  boost::asio::any_io_executor executor_;
  boost::asio::thread_pool threads_;
  boost::asio::thread_pool log_threads_{2};  // that wait for the disk
  std::unique_ptr<checkpoints::Files> files_ = checkpoints::posix_files();
  spdlog::logger& log_;
  Identity const& identity_;
  parameters::Access access_;
  parameters::ShardBook book_;
  CheckpointStore checkpoints_;
  ShardMaker maker_;
  ParameterRoutes routes_;
  ShardRoutes shard_routes_;
  CheckpointRoutes checkpoint_routes_;
  std::set<std::string> suspected_;  // that the coordinator is being told of
  http::TaskGroup tasks_;
};

}  // namespace chorus::service
