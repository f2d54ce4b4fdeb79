// The lower level of a collective on a worker that holds several tensors of one name, grad/0, grad/1, ...: they are
// reduced here first, and all of them get the result.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "http/problem.hpp"
#include "worker/devices/nccl/nccl_teams.hpp"
#include "worker/engine/local_collective.hpp"
#include "worker/service/lower_level.hpp"
#include "worker/service/run_order.hpp"
#include "worker/tensors/memory.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {

inline constexpr std::uint32_t max_parts = 64;

// "grad/3"
[[nodiscard]] std::string part_name(std::string const& tensor, std::uint32_t part);

class LocalLevel final : public LowerLevel {
 public:
  // Problems: unknown_tensor, mismatch between the parts or with what was admitted (the version is the sum of the
  // parts'), unsupported for an operation that has no lower level, invalid_field at /local_algorithm.
  // nccl: null where it is not used.
  [[nodiscard]] static http::Checked<std::shared_ptr<LocalLevel>> make(RunOrder const& order,
                                                                       tensors::Store const& store,
                                                                       devices::NcclTeams* nccl);

  [[nodiscard]] Dtype dtype() const override { return parts_.front().dtype; }
  [[nodiscard]] std::uint64_t elements() const override { return parts_.front().elements(); }  // of each part
  [[nodiscard]] std::uint64_t version() const override { return version_; }
  [[nodiscard]] std::vector<std::shared_ptr<tensors::Block const>> blocks() const override;
  // Workers may have different numbers of parts; what avg divides by, all have been told.
  [[nodiscard]] std::uint64_t agreement() const override { return 0; }
  [[nodiscard]] std::string agreement_text() const override { return ""; }
  // Where a part lies on a GPU, all are reduced to the first such one, in one pass and in their order, whatever
  // algorithm there is for the host's memory: each GPU takes a slice if they see each other's memory, the first one all
  // of it otherwise. Where each part lies on another GPU and the order of additions is free, NCCL may do that. A
  // broadcast begins where the first part lies.
  [[nodiscard]] devices::GpuUnit* gpu() const override { return gpu_; }
  [[nodiscard]] Status allocate(tensors::Pool& pool, bool brings, bool gets) override;

  // Reduces the parts to one; for broadcast there is nothing to reduce.
  [[nodiscard]] Status combine() override;
  // What combine() made, or the first part.
  [[nodiscard]] std::span<std::byte const> combined() const override;

  // Divides (for avg, by all contributions of all workers) and copies the result to every part's next version.
  [[nodiscard]] Status spread(std::span<std::byte> result) override;
  [[nodiscard]] HeldResult results() const override;

 private:
  LocalLevel(RunOrder const& order, std::vector<tensors::Tensor> parts, devices::NcclTeams* nccl);
  [[nodiscard]] http::Checked<std::vector<plan::Program>> plan(Op op) const;
  [[nodiscard]] std::vector<devices::GpuUnit*> units_for_nccl() const;
  [[nodiscard]] Status stage();
  [[nodiscard]] Status combine_on_gpu();
  [[nodiscard]] Status spread_on_gpus(std::span<std::byte> result);

  Op const op_;
  ReduceOp const reduce_;
  std::string const algorithm_;
  bool const any_order_;
  std::uint64_t const contributions_;
  std::vector<tensors::Tensor> const parts_;
  devices::GpuUnit* gpu_ = nullptr;
  std::vector<devices::GpuUnit*> team_;  // gpu_, and the others with parts if all of them see each other
  devices::NcclTeams* const nccl_;
  std::vector<devices::GpuUnit*> nccl_units_;  // those of the parts, each another one; empty where NCCL is of no use
  bool sums_by_nccl_ = false;
  std::uint64_t version_ = 0;
  std::vector<plan::Program> reduction_, distribution_;  // per part; root 0
  std::shared_ptr<tensors::Block> combined_;
  std::vector<std::shared_ptr<tensors::Block>> staged_;  // on gpu_, of parts that it does not see; null of others
  std::vector<std::shared_ptr<tensors::Block>> results_;
};

}  // namespace chorus::service
