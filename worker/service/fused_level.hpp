// Many small tensors in one call: packed one behind the other before, unpacked after.
#pragma once

#include "http/problem.hpp"
#include "worker/engine/fusion.hpp"
#include "worker/service/lower_level.hpp"
#include "worker/service/run_order.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {

inline constexpr std::size_t max_fused_tensors = 10000;

// Whether tensors can be packed for it: what arrives has the shape of what was sent.
[[nodiscard]] bool takes_fused(Op op);

class FusedLevel final : public LowerLevel {
 public:
  // Problems name the tensor at /tensors/{i}: unknown_tensor, busy, invalid_field where dtypes or devices differ;
  // mismatch with what was admitted.
  [[nodiscard]] static http::Checked<std::shared_ptr<FusedLevel>> make(RunOrder const& order,
                                                                       tensors::Store const& store);

  [[nodiscard]] Dtype dtype() const override { return tensors_.front().dtype; }
  [[nodiscard]] std::uint64_t elements() const override { return bucket_.elements(); }
  [[nodiscard]] std::uint64_t version() const override { return version_; }
  [[nodiscard]] std::vector<std::shared_ptr<tensors::Block const>> blocks() const override;
  [[nodiscard]] std::uint64_t agreement() const override { return agreement_; }  // over names and sizes, in their order
  [[nodiscard]] std::string agreement_text() const override;
  [[nodiscard]] devices::GpuUnit* gpu() const override { return tensors_.front().data->gpu(); }
  [[nodiscard]] Status allocate(tensors::Pool& pool, bool brings, bool gets) override;
  [[nodiscard]] Status combine() override;
  [[nodiscard]] std::span<std::byte const> combined() const override;
  [[nodiscard]] Status spread(std::span<std::byte> result) override;
  [[nodiscard]] HeldResult results() const override;

 private:
  FusedLevel(RunOrder const& order, std::vector<tensors::Tensor> tensors);

  bool const averages_;
  std::uint64_t const contributions_;
  std::vector<tensors::Tensor> const tensors_;
  engine::FusionBucket const bucket_;
  std::uint64_t const agreement_;
  std::uint64_t version_ = 0;
  std::shared_ptr<tensors::Block> packed_;
  std::vector<std::shared_ptr<tensors::Block>> results_;
};

}  // namespace chorus::service
