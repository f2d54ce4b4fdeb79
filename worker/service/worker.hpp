// One worker, wired: everything that runs on the control thread, and the data plane with its own.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>
#include <string>

#include "collectives/core/result.hpp"
#include "http/client.hpp"
#include "http/loop_lag.hpp"
#include "http/server.hpp"
#include "metrics/worker_metrics.hpp"
#include "worker/devices/cuda/gpus.hpp"
#include "worker/devices/nccl/nccl_teams.hpp"
#include "worker/engine/data_plane.hpp"
#include "worker/engine/plan_cache.hpp"
#include "worker/service/agent.hpp"
#include "worker/service/client_memory.hpp"
#include "worker/service/flight_routes.hpp"
#include "worker/service/group_book.hpp"
#include "worker/service/group_routes.hpp"
#include "worker/service/health_routes.hpp"
#include "worker/service/helper.hpp"
#include "worker/service/identity.hpp"
#include "worker/service/link_route.hpp"
#include "worker/service/options.hpp"
#include "worker/service/own_memory.hpp"
#include "worker/service/parameter_service.hpp"
#include "worker/service/run_book.hpp"
#include "worker/service/run_routes.hpp"
#include "worker/service/runner.hpp"
#include "worker/service/shm_routes.hpp"
#include "worker/service/tensor_routes.hpp"
#include "worker/service/tensor_upload.hpp"

namespace chorus::service {

// Made and opened before the control thread runs `control`, then used on that thread alone; `control` outlives it.
// After open() it is destroyed only when stop() has returned.
class Worker {
 public:
  using Fenced = std::function<void(std::string why)>;

  // gpus: where tensors may lie beside the host's memory. fenced: a newer process has taken the name; the caller stops
  // the worker. Once, on the control thread.
  Worker(boost::asio::io_context& control, WorkerOptions options, devices::FoundGpus gpus,
         std::shared_ptr<spdlog::logger> log, Fenced fenced);
  ~Worker();
  Worker(Worker const&) = delete;
  Worker& operator=(Worker const&) = delete;

  // Binds, and starts to join. Errors: HttpErrc::bind_failed; bad_url for an address to advertise that is none;
  // AuthErrc for files of tokens and certificates, and for an address that others reach without authentication;
  // NcclErrc where NCCL is to be there and is not.
  [[nodiscard]] Status open();

  [[nodiscard]] Identity const& identity() const { return identity_; }
  [[nodiscard]] std::string const& listens_on() const { return bound_url_; }  // its URL, as it was bound

  // Why this worker is not to be relied on: it does not belong to a coordinator at the moment, or a GPU or its shared
  // memory is lost; or nothing.
  [[nodiscard]] std::optional<std::string> unready();

  // For a program that calls collectives from this process; after open(). Groups on the control thread alone.
  [[nodiscard]] GroupBook& groups();
  // A call of such a program has failed. On the control thread.
  void report(api::Trouble trouble);
  // What such a program has called so far, of each group; asked on the control thread.
  using Calls = std::function<std::vector<api::GroupCalls>()>;
  void count_also(Calls calls) { calls_beside_ = std::move(calls); }
  [[nodiscard]] engine::DataPlane& plane();
  [[nodiscard]] metrics::WorkerMetrics& metrics() { return metrics_; }
  [[nodiscard]] tensors::Pool& pool() { return pool_; }
  [[nodiscard]] std::shared_ptr<memory::Arena> const& arena() const { return arena_; }

  // Not ready from now on; waits for what runs as long as the drain timeout allows, leaves the coordinator, ends the
  // rest.
  boost::asio::awaitable<void> stop();

 private:
  // The URL that others are told, if this port is bound. Errors: HttpErrc::bad_url.
  [[nodiscard]] Result<std::string> advertised(std::uint16_t port) const;
  [[nodiscard]] Status find_nccl();
  void start_agent();
  [[nodiscard]] std::vector<GpuLocality> reported_gpus() const;
  [[nodiscard]] std::vector<api::GroupCalls> calls() const;
  void add_routes();
  // Routes that give out or take in what lies in the arena.
  void add_guarded(http::Router content);
  [[nodiscard]] std::string metrics_text();
  [[nodiscard]] engine::FlightRecorder::Options flight_options();

  boost::asio::io_context& control_;
  boost::asio::any_io_executor executor_;
  WorkerOptions const options_;
  std::shared_ptr<spdlog::logger> log_;
  Fenced const fenced_;
  Calls calls_beside_;  // empty: there is no such program
  Identity identity_;
  std::string bound_url_;
  bool draining_ = false;

  metrics::WorkerMetrics metrics_;
  http::Security security_;
  std::shared_ptr<memory::Arena> arena_;  // null: no memory is shared
  OwnMemory own_memory_;
  devices::Gpus gpus_;
  std::unique_ptr<devices::NcclTeams> nccl_;  // null: it is not used
  tensors::Pool pool_;
  tensors::Store store_;
  ClientMemory clients_;
  engine::PlanCache plans_;
  Helper helper_;
  engine::FlightRecorder flights_;
  http::Client client_;
  http::Router router_;
  http::Server server_;

  // From open() on: they need the port that was bound.
  struct Runs;
  std::unique_ptr<Runs> runs_;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<ParameterService> parameters_;
  std::optional<HealthRoutes> health_routes_;
  std::optional<TensorRoutes> tensor_routes_;
  std::optional<TensorUpload> tensor_upload_;
  ShmRoutes shm_routes_{clients_};
  http::LoopLag lag_;
};

}  // namespace chorus::service
