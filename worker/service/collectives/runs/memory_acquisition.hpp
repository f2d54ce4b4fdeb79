// Acquires the memory of a run: finds or locks its tensors, and allocates what lies beside them.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>

#include "collectives/core/result.hpp"
#include "http/json/problem.hpp"
#include "worker/service/collectives/runs/run_checks.hpp"
#include "worker/service/collectives/runs/run_memory.hpp"
#include "worker/service/requests/helper.hpp"
#include "worker/tensors/memory.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {

// Used on the control thread only. The constructor's arguments outlive it and its calls.
class MemoryAcquisition {
 public:
  MemoryAcquisition(boost::asio::any_io_executor control, RunChecks const& checks, tensors::Store& store,
                    tensors::Pool& pool, Helper& helper)
      : control_(std::move(control)), checks_(checks), store_(store), pool_(pool), helper_(helper) {}

  // A run in place waits up to one second for readers of its tensor, unless `aborted` is set meanwhile. Both arguments
  // outlive the call. Problems: those of RunChecks::refusal; of memory that cannot be had; the reason of the abort.
  boost::asio::awaitable<http::Checked<RunMemory>> acquire(RunOrder const& order, std::optional<Error> const& aborted);

 private:
  boost::asio::awaitable<http::Checked<RunMemory>> acquire_narrow(RunOrder const& order,
                                                                  std::optional<Error> const& aborted);
  boost::asio::awaitable<http::Checked<RunMemory>> acquire_level(RunOrder const& order, RunMemory memory);
  boost::asio::awaitable<Status> allocate(std::shared_ptr<InputAdapter> level, RunPart const& part);
  boost::asio::awaitable<Status> carry(RunOrder const& order, RunMemory& memory);
  boost::asio::awaitable<http::Checked<std::shared_ptr<tensors::Store::Exclusive>>> overwrite(
      RunOrder const& order, std::uint64_t version, std::optional<Error> const& aborted);
  boost::asio::awaitable<Result<std::shared_ptr<tensors::Block>>> acquire_beside(devices::GpuUnit* gpu,
                                                                                 std::uint64_t bytes);

  boost::asio::any_io_executor const control_;
  RunChecks const& checks_;
  tensors::Store& store_;
  tensors::Pool& pool_;
  Helper& helper_;
};

}  // namespace chorus::service
