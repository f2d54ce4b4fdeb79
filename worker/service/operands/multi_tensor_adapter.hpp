// The lower level of a collective on a worker with several tensors of one name, grad/0, grad/1, ...: they are reduced
// here first, and all of them get the result.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "http/json/problem.hpp"
#include "worker/devices/nccl/nccl_teams.hpp"
#include "worker/engine/program/local_collective.hpp"
#include "worker/service/operands/input_adapter.hpp"
#include "worker/service/operands/run_order.hpp"
#include "worker/tensors/memory.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {

inline constexpr std::uint32_t max_parts = 64;

// "grad/3"
[[nodiscard]] std::string part_name(std::string const& tensor, std::uint32_t part);

class MultiTensorAdapter final : public InputAdapter {
 public:
  // nccl: null if NCCL is not used. Problems: unknown_tensor; mismatch between the parts, or with what was admitted
  // (the version is the sum of the parts'); unsupported for an operation without a lower level; invalid_field at
  // /local_algorithm.
  [[nodiscard]] static http::Checked<std::shared_ptr<MultiTensorAdapter>> make(RunOrder const& order,
                                                                               tensors::Store const& store,
                                                                               devices::NcclTeams* nccl);

  [[nodiscard]] Dtype dtype() const override { return parts_.front().dtype; }
  [[nodiscard]] std::uint64_t elements() const override { return parts_.front().elements(); }  // of each part
  [[nodiscard]] std::uint64_t version() const override { return version_; }
  [[nodiscard]] std::vector<std::shared_ptr<tensors::Block const>> blocks() const override;
  // Workers may have different numbers of parts; all were told the divisor of an average.
  [[nodiscard]] std::uint64_t agreement() const override { return 0; }
  [[nodiscard]] std::string agreement_text() const override { return ""; }
  // The first GPU with a part; all parts are reduced to it, in one pass and in their order, whatever algorithm is set
  // for host memory. If the GPUs see each other's memory each takes a slice, otherwise the first one does all. If each
  // part is on another GPU and the order of additions is free, NCCL may do the reduction, except for averages of f16
  // and bf16. A broadcast begins at the first part.
  [[nodiscard]] devices::GpuUnit* gpu() const override { return gpu_; }
  [[nodiscard]] Status allocate(tensors::Pool& pool, bool brings, bool gets) override;

  [[nodiscard]] bool carry(engine::CarriedAverage const& carried) override {
    carried_ = carried;
    return true;
  }

  // Reduces the parts to one; a broadcast has nothing to reduce.
  [[nodiscard]] Status combine() override;
  // Result of combine(), or the first part.
  [[nodiscard]] std::span<std::byte const> combined() const override;

  // Copies the result to the next version of every part.
  [[nodiscard]] Status spread(std::span<std::byte> result) override;
  [[nodiscard]] HeldResult results() const override;

 private:
  MultiTensorAdapter(RunOrder const& order, std::vector<tensors::Tensor> parts, devices::NcclTeams* nccl);
  [[nodiscard]] http::Checked<std::vector<plan::Program>> plan(Op op) const;
  [[nodiscard]] std::vector<devices::GpuUnit*> units_for_nccl() const;
  [[nodiscard]] ReduceOp sums() const;
  [[nodiscard]] bool sums_on_gpu() const;
  [[nodiscard]] Status allocate_combined(tensors::Pool& pool);
  [[nodiscard]] Status stage();
  [[nodiscard]] Status combine_by_nccl();
  [[nodiscard]] Status combine_on_gpu();
  [[nodiscard]] Status combine_on_host();
  [[nodiscard]] Status spread_on_gpus(std::span<std::byte> result);

  Op const op_;
  ReduceOp const reduce_;
  std::string const algorithm_;
  bool const any_order_;
  std::vector<tensors::Tensor> const parts_;
  devices::GpuUnit* gpu_ = nullptr;
  std::vector<devices::GpuUnit*> team_;  // gpu_, and the other GPUs with parts if all see each other
  devices::NcclTeams* const nccl_;
  std::vector<devices::GpuUnit*> nccl_units_;  // of the parts, all different; empty if NCCL is not used
  bool sums_by_nccl_ = false;
  std::optional<engine::CarriedAverage> carried_;      // then the parts are summed in the same dtype
  std::vector<std::shared_ptr<tensors::Block>> wide_;  // wide copies of the parts, if those are added
  std::uint64_t version_ = 0;
  std::vector<plan::Program> reduction_, distribution_;  // per part; root 0
  std::shared_ptr<tensors::Block> combined_;
  std::vector<std::shared_ptr<tensors::Block>> staged_;  // copies on gpu_ of parts that it does not see; null for
                                                         // others
  std::vector<std::shared_ptr<tensors::Block>> results_;
};

}  // namespace chorus::service
