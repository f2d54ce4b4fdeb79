// A portion of many small tensors in one call: packed before the run, unpacked after it.
#pragma once

#include "worker/devices/cuda/gpus.hpp"
#include "worker/service/operands/fused_list.hpp"
#include "worker/service/operands/input_adapter.hpp"
#include "worker/service/operands/run_order.hpp"

namespace chorus::service {

// A portion of one tensor is not packed: the run reads the tensor and writes its next version.
class FusedAdapter final : public InputAdapter {
 public:
  // `order` has a list.
  explicit FusedAdapter(RunOrder const& order);

  [[nodiscard]] Dtype dtype() const override { return list_->dtype(); }
  [[nodiscard]] std::uint64_t elements() const override { return portion().elements(); }
  [[nodiscard]] std::uint64_t version() const override { return list_->version(number_); }
  [[nodiscard]] std::vector<std::shared_ptr<tensors::Block const>> blocks() const override;
  // Covers the whole list: ranks that differ in a later portion must not begin.
  [[nodiscard]] std::uint64_t agreement() const override { return list_->agreement(); }
  [[nodiscard]] std::string agreement_text() const override;
  [[nodiscard]] devices::GpuUnit* gpu() const override { return list_->tensors().front().data->gpu(); }
  [[nodiscard]] Status allocate(tensors::Pool& pool, bool brings, bool gets) override;
  [[nodiscard]] bool carry(engine::CarriedAverage const&) override { return false; }
  [[nodiscard]] Status combine() override;
  [[nodiscard]] std::span<std::byte const> combined() const override;
  [[nodiscard]] std::shared_ptr<tensors::Block> destination() const override;
  [[nodiscard]] Status spread(std::span<std::byte> result) override;
  [[nodiscard]] HeldResult results() const override;

 private:
  // Bytes that are copied between the packed vector and a tensor of the list.
  struct Copy {
    std::uint64_t packed = 0;  // where they begin in the vector
    std::size_t item = 0;      // index in the list
    std::uint64_t at = 0;      // where they begin in the tensor
    std::uint64_t bytes = 0;
  };
  // The vector is `blocks` blocks of all tensors, or one.
  [[nodiscard]] std::vector<Copy> copies(std::uint32_t blocks) const;
  // In memory of the list's GPU, or of the host.
  [[nodiscard]] Status move(std::span<devices::GpuCopy const> copies);
  // Blocks that this rank has of the vector: before the run, and after it.
  [[nodiscard]] std::uint32_t brought() const { return list_->call().op == Op::all_gather ? 1 : list_->blocks(); }
  [[nodiscard]] std::uint32_t gotten() const { return list_->call().op == Op::reduce_scatter ? 1 : list_->blocks(); }
  [[nodiscard]] engine::FusionBucket const& portion() const { return list_->portions()[number_]; }
  // The tensor of a portion that has only one.
  [[nodiscard]] std::size_t only() const { return portion().pieces.front().item; }

  std::shared_ptr<FusedList const> const list_;
  std::size_t const number_;
  std::vector<std::size_t> const tensors_;  // see tensors_of()
  std::shared_ptr<tensors::Block> packed_;
  std::vector<std::shared_ptr<tensors::Block>> results_;  // by index in the list; null for tensors of other portions
};

}  // namespace chorus::service
