// Executes one run on this rank: finds the tensor and the plan, starts the run on the data plane, waits, digests,
// counts.
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
#include "worker/engine/program/plan_cache.hpp"
#include "worker/engine/trace/flight_recorder.hpp"
#include "worker/service/collectives/runs/memory_acquisition.hpp"
#include "worker/service/collectives/runs/run_checks.hpp"
#include "worker/service/collectives/runs/run_memory.hpp"
#include "worker/service/operands/held_result.hpp"
#include "worker/service/operands/run_order.hpp"
#include "worker/service/requests/helper.hpp"
#include "worker/tensors/memory.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {

struct RunEnd {
  std::chrono::steady_clock::time_point started;
  RunStatistics statistics;
  engine::RunTrace trace;
  std::optional<http::Problem> problem;  // why the run failed
  std::string input_digest;              // "" unless asked for
  std::string output_digest;
  HeldResult result;  // empty if the run failed
};

// Used on the control thread only. Its parts outlive the runner and its runs.
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
    devices::NcclTeams* nccl = nullptr;  // null: NCCL is not used
  };

  explicit Runner(Parts parts)
      : parts_(std::move(parts)),
        checks_(parts_.plans, parts_.store, parts_.nccl),
        acquisition_(parts_.control, checks_, parts_.store, parts_.pool, parts_.helper) {}
  Runner(Runner const&) = delete;
  Runner& operator=(Runner const&) = delete;

  // Problems are refusals before the start: the tensor, the plan or the memory does not fit. A run that has begun and
  // failed returns a RunEnd with a problem. A run in place waits up to one second for readers of its tensor.
  boost::asio::awaitable<http::Checked<RunEnd>> run(RunOrder order);

  // Ends the run with `why`, whether it is being prepared or runs already; no effect if it has ended.
  void abort(std::uint64_t run, Error why);

  // Declares that this rank will not begin the run of a members' call; the others are told why. Only what identifies
  // the run is used of the order.
  void give_up(RunOrder const& order, http::Problem const& why);

  // The problem with which run() would refuse at once.
  [[nodiscard]] std::optional<http::Problem> refusal(RunOrder const& order) const { return checks_.refusal(order); }

  // See HeldResult::commit.
  boost::asio::awaitable<Result<std::uint64_t>> commit(HeldResult result);

  [[nodiscard]] tensors::Store const& store() const { return parts_.store; }
  // An epoch of the group is over: what was kept for its next calls is dropped.
  void forget(std::string const& group) { parts_.store.residuals().drop_group(group); }

 private:
  [[nodiscard]] engine::RunSpec to_spec(RunOrder const& order, RunMemory const& memory);
  boost::asio::awaitable<Status> combine(std::shared_ptr<InputAdapter> level);
  boost::asio::awaitable<Status> prepare(RunMemory const& memory);
  boost::asio::awaitable<Status> convert(RunMemory const& memory);
  boost::asio::awaitable<Status> convert_back(RunMemory const& memory);
  boost::asio::awaitable<Status> spread(std::shared_ptr<InputAdapter> level, std::shared_ptr<tensors::Block> result);
  boost::asio::awaitable<Status> finish(RunOrder const& order, RunMemory const& memory, RunEnd& end);
  boost::asio::awaitable<Result<std::string>> digest_of(RunMemory const& memory, std::span<std::byte const> bytes);
  void record(RunOrder const& order, RunMemory const& memory, RunEnd& end);

  class Preparation;

  Parts parts_;
  RunChecks const checks_;
  MemoryAcquisition acquisition_;
  std::map<std::uint64_t, std::optional<Error>> preparing_;  // by run: why it must not start, if so
};

}  // namespace chorus::service
