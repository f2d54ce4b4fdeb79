// A portion of many small tensors in one call: packed one behind the other before, unpacked after.
#pragma once

#include "worker/service/fused_list.hpp"
#include "worker/service/lower_level.hpp"
#include "worker/service/run_order.hpp"

namespace chorus::service {

// A portion of one tensor is not packed: it travels from where it lies to where its next version will.
class FusedLevel final : public LowerLevel {
 public:
  // Of an order with a list.
  explicit FusedLevel(RunOrder const& order);

  [[nodiscard]] Dtype dtype() const override { return list_->dtype(); }
  [[nodiscard]] std::uint64_t elements() const override { return portion().elements(); }
  [[nodiscard]] std::uint64_t version() const override { return list_->version(number_); }
  [[nodiscard]] std::vector<std::shared_ptr<tensors::Block const>> blocks() const override;
  // Over the whole list: ranks that differ later must not have begun.
  [[nodiscard]] std::uint64_t agreement() const override { return list_->agreement(); }
  [[nodiscard]] std::string agreement_text() const override;
  [[nodiscard]] devices::GpuUnit* gpu() const override { return list_->tensors().front().data->gpu(); }
  [[nodiscard]] Status allocate(tensors::Pool& pool, bool brings, bool gets) override;
  [[nodiscard]] Status combine() override;
  [[nodiscard]] std::span<std::byte const> combined() const override;
  [[nodiscard]] std::shared_ptr<tensors::Block> destination() const override;
  [[nodiscard]] Status spread(std::span<std::byte> result) override;
  [[nodiscard]] HeldResult results() const override;

 private:
  [[nodiscard]] engine::FusionBucket const& portion() const { return list_->portions()[number_]; }
  // The one tensor of a portion that has only one.
  [[nodiscard]] std::size_t only() const { return portion().pieces.front().item; }

  bool const averages_;
  std::uint64_t const contributions_;
  std::shared_ptr<FusedList const> const list_;
  std::size_t const number_;
  std::vector<std::size_t> const tensors_;  // see tensors_of()
  std::shared_ptr<tensors::Block> packed_;
  std::vector<std::shared_ptr<tensors::Block>> results_;  // by index in the list; null of other portions' tensors
};

}  // namespace chorus::service
