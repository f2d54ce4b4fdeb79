// Does one run on this rank: finds the tensor and the plan, hands them to the data plane, waits, digests, counts.
#pragma once

#include <spdlog/logger.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <map>
#include <optional>
#include <string>

#include "metrics/worker_metrics.hpp"
#include "worker/devices/nccl/nccl_teams.hpp"
#include "worker/engine/data_plane.hpp"
#include "worker/engine/flight_recorder.hpp"
#include "worker/engine/plan_cache.hpp"
#include "worker/service/held_result.hpp"
#include "worker/service/helper.hpp"
#include "worker/service/run_order.hpp"
#include "worker/tensors/memory.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {

struct RunEnd {
  std::uint64_t started_us = 0;  // monotonic clock of this worker
  double seconds = 0;
  double wait_seconds = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint32_t steps = 0;
  engine::Reduced reduced;
  devices::GpuUse gpu;
  std::chrono::steady_clock::time_point started;
  std::vector<engine::FlightStep> instructions;
  std::vector<devices::GpuSpan> gpu_spans;
  std::optional<http::Problem> problem;  // why it failed
  std::string input_digest;              // "" unless asked for
  std::string output_digest;
  HeldResult result;  // empty when it failed
};

class LowerLevel;
struct RunMemory;
struct RunPart;

// On the control thread. Everything that it refers to outlives it and its runs.
class Runner {
 public:
  struct Parts {
    boost::asio::any_io_executor control;
    engine::DataPlane& plane;
    engine::PlanCache& plans;
    tensors::Store& store;
    tensors::Pool& pool;
    Helper& helper;
    metrics::WorkerMetrics& metrics;
    engine::FlightRecorder& flights;
    spdlog::logger& log;
    devices::NcclTeams* nccl = nullptr;  // null: it is not used
  };

  explicit Runner(Parts parts) : parts_(std::move(parts)) {}

  // Problems are refusals before anything has begun: the tensor, the plan or the memory does not fit. What has begun
  // and failed is a RunEnd with a problem. In place, a tensor that is being read is waited for, one second at most.
  boost::asio::awaitable<http::Checked<RunEnd>> run(RunOrder order);

  // Ends the run with `why`, whether it is still being prepared here or runs already; nothing if it has ended.
  void abort(std::uint64_t run, Error why);

  // What run() would refuse at once.
  [[nodiscard]] std::optional<http::Problem> refusal(RunOrder const& order);

  // See HeldResult::commit.
  boost::asio::awaitable<Result<std::uint64_t>> commit(HeldResult result);

  [[nodiscard]] tensors::Store const& store() const { return parts_.store; }

 private:
  boost::asio::awaitable<http::Checked<RunMemory>> acquire(RunOrder const& order);
  boost::asio::awaitable<http::Checked<std::shared_ptr<tensors::Store::Exclusive>>> overwrite(RunOrder const& order,
                                                                                              std::uint64_t version);
  [[nodiscard]] http::Checked<RunMemory> acquire_level(RunOrder const& order, RunMemory memory);
  [[nodiscard]] http::Checked<std::shared_ptr<LowerLevel>> level_of(RunOrder const& order, RunPart const& part);
  [[nodiscard]] http::Checked<RunPart> part_of(RunOrder const& order);
  [[nodiscard]] std::optional<http::Problem> refusal(RunOrder const& order, RunPart const& part,
                                                     tensors::Tensor const* tensor);
  [[nodiscard]] std::optional<http::Problem> check_home(RunOrder const& order, Dtype dtype) const;
  [[nodiscard]] http::Checked<std::shared_ptr<plan::Program const>> find_program(RunOrder const& order);
  [[nodiscard]] engine::RunSpec to_spec(RunOrder const& order, RunMemory const& memory);
  boost::asio::awaitable<Status> combine(std::shared_ptr<LowerLevel> level);
  boost::asio::awaitable<Status> spread(std::shared_ptr<LowerLevel> level, std::shared_ptr<tensors::Block> result);
  boost::asio::awaitable<Status> finish(RunOrder const& order, RunMemory const& memory, RunEnd& end);
  boost::asio::awaitable<Status> divide(RunOrder const& order, RunMemory const& memory);
  boost::asio::awaitable<Result<std::string>> digest_of(RunMemory const& memory, std::span<std::byte const> bytes);
  void give_up(RunOrder const& order, http::Problem const& why);
  void record(RunOrder const& order, RunMemory const& memory, RunEnd& end);

  class Preparation;

  Parts parts_;
  std::map<std::uint64_t, std::optional<Error>> preparing_;  // with why they are not to start
};

}  // namespace chorus::service
