// The parameter server in a worker: its shards, access to shards of other workers, and the routes to both.
#pragma once

#include <spdlog/logger.h>

#include <memory>
#include <set>
#include <string>

#include "base/runtime/side_thread.hpp"
#include "metrics/worker_metrics.hpp"
#include "worker/parameters/log/directory_lock.hpp"
#include "worker/service/parameters/shards/checkpoint_routes.hpp"
#include "worker/service/parameters/shards/shard_routes.hpp"
#include "worker/service/parameters/values/parameter_routes.hpp"
#include "worker/service/requests/identity.hpp"

namespace chorus::service {

// Used on the control thread only. The arguments outlive the service. Call stop() before the server's stop(); destroy
// after it.
class ParameterService {
 public:
  struct Parts {
    boost::asio::any_io_executor executor;
    boost::asio::any_io_executor instead;  // of threads, see SideThread
    http::Client& client;
    http::MessageChecksums checksums;  // for messages to other workers
    tensors::Pool& pool;
    devices::Gpus const* gpus;  // null: no shard is on a GPU
    Helper& helper;
    Identity const& identity;
    metrics::WorkerMetrics& metrics;
    std::string coordinator;
    std::string checkpoint_directory;  // "": no checkpoints
    std::string log_directory;         // "": no logs of pushes
    std::uint64_t log_snapshot_bytes;
    std::uint64_t fill_bytes_per_second;
    parameters::DiskPatience disk_patience;
    parameters::OwnerLease const* lease;  // null: owners need no lease
    spdlog::logger& log;
  };
  // Throws std::runtime_error if another worker uses the directory of logs.
  explicit ParameterService(Parts parts);
  ~ParameterService();
  ParameterService(ParameterService const&) = delete;
  ParameterService& operator=(ParameterService const&) = delete;

  void add_to(http::Router& router);
  // Waits until the deadline at most for checkpoint files that are being written.
  boost::asio::awaitable<void> settle(http::TimePoint deadline);
  boost::asio::awaitable<void> stop();
  // Call after stop() and the server's stop(): no coroutine waits for a file any more. Threads whose disk does not
  // answer by the deadline are abandoned; the log tells what each waits for.
  boost::asio::awaitable<void> leave_disks(http::TimePoint deadline);

  [[nodiscard]] parameters::ShardBook const& book() const { return book_; }
  // A disk that does not answer, or is full; empty if all are well.
  [[nodiscard]] std::optional<std::string> trouble() const;
  // Longest wait of a current call to each disk; 0 if there is none.
  [[nodiscard]] metrics::DiskWaits disk_waits() const;

 private:
  [[nodiscard]] parameters::ShardEvents events();
  void suspect(std::string const& worker, std::string const& incarnation);
  boost::asio::awaitable<void> tell(std::string worker, std::string incarnation);
  boost::asio::awaitable<void> report_loss(std::string parameter, std::uint32_t shard);
  boost::asio::awaitable<void> let_go();

  metrics::WorkerMetrics& metrics_;
  boost::asio::any_io_executor executor_;
  http::SideThread threads_;
  // Possibly different disks: one that hangs does not delay calls to the other.
  parameters::Disk checkpoint_disk_, log_disk_;
  parameters::DirectoryLock const log_lock_;
  spdlog::logger& log_;
  Identity const& identity_;
  parameters::Access access_;
  parameters::ShardBook book_;
  CheckpointStore checkpoints_;
  ShardMaker maker_;
  ParameterRoutes routes_;
  ShardRoutes shard_routes_;
  CheckpointRoutes checkpoint_routes_;
  std::set<std::string> suspected_;  // workers that the coordinator is being told of
  http::TaskGroup tasks_;
};

}  // namespace chorus::service
