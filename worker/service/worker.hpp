// A worker with all its parts: those on the control thread, and the data plane with its own thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>
#include <string>

#include "base/runtime/loop_lag.hpp"
#include "base/runtime/side_thread.hpp"
#include "collectives/core/result.hpp"
#include "http/client/client.hpp"
#include "http/server/server.hpp"
#include "metrics/worker_metrics.hpp"
#include "worker/devices/cuda/gpus.hpp"
#include "worker/devices/nccl/nccl_teams.hpp"
#include "worker/engine/data_plane.hpp"
#include "worker/engine/program/plan_cache.hpp"
#include "worker/service/cluster/agent.hpp"
#include "worker/service/cluster/link_route.hpp"
#include "worker/service/collectives/group_routes.hpp"
#include "worker/service/collectives/groups/group_registry.hpp"
#include "worker/service/collectives/run_routes.hpp"
#include "worker/service/collectives/runs/flight_routes.hpp"
#include "worker/service/collectives/runs/run_registry.hpp"
#include "worker/service/collectives/runs/runner.hpp"
#include "worker/service/health_routes.hpp"
#include "worker/service/memory/client_memory.hpp"
#include "worker/service/memory/memory_keeper.hpp"
#include "worker/service/memory/own_memory.hpp"
#include "worker/service/memory/shm_routes.hpp"
#include "worker/service/options.hpp"
#include "worker/service/parameters/parameter_service.hpp"
#include "worker/service/requests/helper.hpp"
#include "worker/service/requests/identity.hpp"
#include "worker/service/tensors/tensor_routes.hpp"
#include "worker/service/tensors/tensor_upload.hpp"

namespace chorus::service {

// Constructed and opened before the control thread runs `control`, then used on that thread only; `control` outlives
// the worker. After open(), destroy it only when stop() has returned.
class Worker {
 public:
  using Fenced = std::function<void(std::string why)>;

  // gpus: memory for tensors besides host memory. fenced: called once on the control thread when a newer process has
  // taken the name; the caller stops the worker.
  Worker(boost::asio::io_context& control, WorkerOptions options, devices::FoundGpus gpus,
         std::shared_ptr<spdlog::logger> log, Fenced fenced);
  ~Worker();
  Worker(Worker const&) = delete;
  Worker& operator=(Worker const&) = delete;

  // Binds, and starts to join. Errors: HttpErrc::bind_failed; bad_url for an invalid address to advertise; AuthErrc for
  // files of tokens and certificates, and for an address that others reach without authentication; NcclErrc if NCCL is
  // required and not found.
  [[nodiscard]] Status open();

  [[nodiscard]] Identity const& identity() const { return identity_; }
  [[nodiscard]] std::string const& listens_on() const { return bound_url_; }  // its URL, as it was bound

  // Why this worker cannot be relied on: it is no member at the moment, or a GPU or its shared memory is lost. Empty if
  // it can.
  [[nodiscard]] std::optional<std::string> unready();

  // A problem of a worker that is ready nevertheless; empty if there is none.
  [[nodiscard]] std::optional<std::string> complaint() const { return keeper_.complaint(); }

  // For programs that call collectives in this process, after open(). Groups: control thread only.
  [[nodiscard]] GroupRegistry& groups();
  // Its requests to the coordinator, whose URL is empty if there is none: control thread only. Ended by stop().
  [[nodiscard]] http::Client& client() { return client_; }
  [[nodiscard]] std::string const& coordinator() const { return coordinator_; }
  // A call of such a program has failed. Used on the control thread only.
  void report(api::Trouble trouble);
  // Supplies the calls of such a program so far, per group; called on the control thread.
  using Calls = std::function<std::vector<api::GroupCalls>()>;
  void count_also(Calls calls) { calls_beside_ = std::move(calls); }
  [[nodiscard]] engine::DataPlane& plane();
  [[nodiscard]] metrics::WorkerMetrics& metrics() { return metrics_; }
  [[nodiscard]] tensors::Pool& pool() { return pool_; }
  [[nodiscard]] std::shared_ptr<memory::Arena> const& arena() const { return arena_; }

  // Makes the worker not ready, waits up to the drain timeout for current work, leaves the coordinator, and ends the
  // rest.
  boost::asio::awaitable<void> stop();

 private:
  // The URL to advertise if this port is bound. Errors: HttpErrc::bad_url.
  [[nodiscard]] Result<std::string> advertised(std::uint16_t port) const;
  void tell_memory();
  [[nodiscard]] Status find_nccl();
  void start_agent();
  [[nodiscard]] std::vector<GpuLocality> reported_gpus() const;
  [[nodiscard]] std::vector<api::GroupCalls> calls() const;
  void add_routes();
  // Adds routes whose bodies come from or go to the arena.
  void add_guarded(http::Router content);
  [[nodiscard]] std::string metrics_text();
  [[nodiscard]] engine::FlightRecorder::Options flight_options();
  [[nodiscard]] tensors::Pool::Elsewhere elsewhere();
  // See SideThread.
  [[nodiscard]] boost::asio::any_io_executor instead_of_threads() const {
    return options_.has_threads ? boost::asio::any_io_executor() : executor_;
  }

  boost::asio::io_context& control_;
  boost::asio::any_io_executor executor_;
  WorkerOptions const options_;
  std::string const coordinator_;  // the first one in the options
  std::shared_ptr<spdlog::logger> log_;
  Fenced const fenced_;
  Calls calls_beside_;  // empty: no such program
  Identity identity_;
  std::string bound_url_;
  bool draining_ = false;

  metrics::WorkerMetrics metrics_;
  http::Security security_;
  std::shared_ptr<memory::Arena> arena_;  // null: no memory is shared
  OwnMemory own_memory_;
  devices::Gpus gpus_;
  std::unique_ptr<devices::NcclTeams> nccl_;  // null: NCCL is not used
  http::SideThread freeing_;                  // frees memory
  tensors::Pool pool_;
  MemoryKeeper keeper_;
  tensors::Store store_;
  ClientMemory clients_;
  engine::PlanCache plans_;
  Helper helper_;
  engine::FlightRecorder flights_;
  http::Client client_;
  http::Router router_;
  http::Server server_;

  // Created by open(), because they need the bound port.
  struct Runs;
  std::unique_ptr<Runs> runs_;
  parameters::OwnerLease owner_lease_;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<ParameterService> parameters_;
  std::optional<HealthRoutes> health_routes_;
  std::optional<TensorRoutes> tensor_routes_;
  std::optional<TensorUpload> tensor_upload_;
  ShmRoutes shm_routes_{clients_};
  http::LoopLag lag_;
};

}  // namespace chorus::service
