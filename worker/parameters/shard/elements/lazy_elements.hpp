// Rows that are created by the first push to them. The arrays hold the existing rows one after the other. A row that
// does not exist is read as its initial values and takes no memory.
#pragma once

#include "worker/parameters/optimizers/initializer.hpp"
#include "worker/parameters/shard/elements/elements.hpp"
#include "worker/parameters/shard/pushes/row_index.hpp"

namespace chorus::parameters {

class LazyElements final : public Elements {
 public:
  // `values`: memory without rows.
  LazyElements(ShardSpec const& spec, tensors::Pool& pool, Optimizer optimizer, Initializer const& initializer,
               std::shared_ptr<tensors::Block> values);

  [[nodiscard]] std::optional<std::uint64_t> rows() const override { return rows_count_; }
  void copy_rows(std::span<std::uint64_t const> rows, std::span<std::byte> into) const override;
  [[nodiscard]] std::uint64_t rows_to_look_at(Push const& push, std::span<Push const> held) const override;
  [[nodiscard]] std::optional<http::Problem> lacks_room(Push const& push, std::span<Push const> held) const override;

  [[nodiscard]] Status prepare_values(ElementsChange& change, std::shared_ptr<tensors::Block const> data) override;
  [[nodiscard]] Status prepare_step(ElementsChange& change, std::vector<Push> gradients) override;
  void finish(ElementsChange change) override;

  // The arrays of the existing rows cannot be split by the parameter's elements.
  [[nodiscard]] Status add_arrays(std::vector<ShardImage::Array>& arrays) override;
  [[nodiscard]] std::span<std::byte> place_for(std::string_view array, std::uint64_t bytes) override;
  [[nodiscard]] std::optional<std::span<std::byte>> place_for(std::string_view) override { return std::nullopt; }
  [[nodiscard]] bool restore(api::ShardState const& state) override;

 private:
  [[nodiscard]] std::span<std::byte const> arrived_values() override {
    return arriving_values_ ? arriving_values_->bytes() : std::span<std::byte>();
  }
  // Rows that do not exist yet, ascending.
  [[nodiscard]] std::vector<std::uint64_t> created_by(std::span<Push const* const> pushes) const;
  [[nodiscard]] Status prepare_target(ElementsChange& change, std::uint64_t rows);
  [[nodiscard]] bool restore_rows(std::uint64_t count);

  Initializer const initializer_;
  RowIndex index_;
  std::uint64_t rows_count_ = 0;                                     // in index_, at the last finish()
  std::shared_ptr<tensors::Block> arriving_rows_, arriving_values_;  // of an image that is being restored
};

}  // namespace chorus::parameters
