// Checks the order of a run against its plan and the tensors of this worker, before any memory is acquired.
#pragma once

#include <memory>
#include <optional>

#include "http/json/problem.hpp"
#include "worker/devices/nccl/nccl_teams.hpp"
#include "worker/engine/program/plan_cache.hpp"
#include "worker/service/collectives/runs/run_memory.hpp"
#include "worker/service/operands/input_adapter.hpp"
#include "worker/service/operands/run_order.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {

// Used on the control thread only. The constructor's arguments outlive it.
class RunChecks {
 public:
  // nccl: null if NCCL is not used.
  RunChecks(engine::PlanCache& plans, tensors::Store const& store, devices::NcclTeams* nccl)
      : plans_(plans), store_(store), nccl_(nccl) {}

  // The problem with which the run would be refused at once.
  [[nodiscard]] std::optional<http::Problem> refusal(RunOrder const& order) const;
  // The same for a run of one tensor, or of none (null), with its part in the plan.
  [[nodiscard]] std::optional<http::Problem> refusal(RunOrder const& order, RunPart const& part,
                                                     tensors::Tensor const* tensor) const;

  // This rank's part in the plan. Problems: invalid_field; those of the plan.
  [[nodiscard]] http::Checked<RunPart> part_of(RunOrder const& order) const;
  // The tensors of an order that brings several. Problems: those of refusal() for them.
  [[nodiscard]] http::Checked<std::shared_ptr<InputAdapter>> level_of(RunOrder const& order, RunPart const& part) const;

 private:
  [[nodiscard]] http::Checked<std::shared_ptr<plan::Program const>> find_program(RunOrder const& order) const;
  [[nodiscard]] std::optional<http::Problem> check_home(RunOrder const& order, Dtype dtype) const;

  engine::PlanCache& plans_;
  tensors::Store const& store_;
  devices::NcclTeams* const nccl_;
};

}  // namespace chorus::service
