// The elements of one shard: values and the optimizer's state, in host memory, in lazy rows or on a GPU.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "worker/parameters/optimizers/optimizer.hpp"
#include "worker/parameters/shard/elements/image.hpp"
#include "worker/parameters/shard/elements/shard_memory.hpp"
#include "worker/parameters/shard/elements/spec.hpp"
#include "worker/parameters/shard/pushes/push.hpp"
#include "worker/parameters/shard/pushes/step.hpp"

namespace chorus::parameters {

// A change of the elements that has been prepared; see Shard::Change.
struct ElementsChange {
  std::function<Status()> begin;                                          // null: nothing to do
  std::function<void(std::uint64_t first, std::uint64_t count)> compute;  // null: begin() does everything
  std::uint64_t elements = 0;                                             // for compute()
  std::uint64_t bytes = 0;                                                // read and written, approximately
  bool is_in_place = false;                // values() are being written, or are not available
  bool creates_rows = false;               // that others must not look for meanwhile
  bool is_new = false;                     // the shard has `values` after it
  std::shared_ptr<tensors::Block> values;  // null: on a GPU
};

// Used as Shard is, whose functions of the same names say more. Errors of memory are those of Pool::acquire and
// GpuErrc.
class Elements {
 public:
  enum class Content : std::uint8_t { initial, to_come };
  // The spec, which outlives the elements, decides where they are. Errors: as of Shard::make.
  [[nodiscard]] static Result<std::unique_ptr<Elements>> make(ShardSpec const& spec, ShardMemory memory,
                                                              Content content);
  virtual ~Elements() = default;
  Elements(Elements const&) = delete;
  Elements& operator=(Elements const&) = delete;

  // Null: on a GPU, and there is no copy of this version.
  [[nodiscard]] std::shared_ptr<tensors::Block const> values() const { return values_; }
  void keep(std::shared_ptr<tensors::Block> values) { values_ = std::move(values); }
  [[nodiscard]] std::uint64_t steps() const { return optimizer_.steps(); }
  [[nodiscard]] virtual std::uint64_t value_bytes() const { return values_->size_bytes(); }
  [[nodiscard]] virtual std::optional<std::uint64_t> rows() const { return std::nullopt; }
  [[nodiscard]] virtual devices::GpuUnit* gpu() const { return nullptr; }
  [[nodiscard]] virtual Result<std::shared_ptr<tensors::Block>> download() const;  // on a GPU only
  virtual void copy_rows(std::span<std::uint64_t const> rows, std::span<std::byte> into) const;

  // `held`: the pushes of the open round.
  [[nodiscard]] virtual std::uint64_t rows_to_look_at(Push const&, std::span<Push const> /*held*/) const { return 0; }
  [[nodiscard]] virtual std::optional<http::Problem> lacks_room(Push const&, std::span<Push const> /*held*/) const {
    return std::nullopt;
  }

  // A change to pushed values, which become the elements' own; or a step by one or several gradients.
  [[nodiscard]] virtual Status prepare_values(ElementsChange& change, std::shared_ptr<tensors::Block const> data) = 0;
  [[nodiscard]] virtual Status prepare_step(ElementsChange& change, std::vector<Push> gradients) = 0;
  virtual void finish(ElementsChange change) {
    if (change.is_new) values_ = std::move(change.values);
  }

  [[nodiscard]] virtual Status add_arrays(std::vector<ShardImage::Array>& arrays) = 0;
  [[nodiscard]] virtual std::span<std::byte> place_for(std::string_view array, std::uint64_t bytes);
  [[nodiscard]] virtual std::optional<std::span<std::byte>> place_for(std::string_view array);
  [[nodiscard]] bool begin_arrays_without(std::vector<std::string> const& present, api::ShardState& state);
  [[nodiscard]] virtual Status settle() { return ok(); }
  [[nodiscard]] virtual bool restore(api::ShardState const& state);

 protected:
  // The values of an image whose arrays have been filled.
  [[nodiscard]] virtual std::span<std::byte const> arrived_values() {
    return place_for("values").value_or(std::span<std::byte>());
  }
  Elements(ShardSpec const& spec, tensors::Pool& pool, Optimizer optimizer)
      : spec_(spec), pool_(pool), optimizer_(std::move(optimizer)) {}
  // Copies an array to an image.
  [[nodiscard]] Status add_copy(std::vector<ShardImage::Array>& arrays, StateArray const& array,
                                std::span<std::byte const> content, std::uint64_t elements_each) const;
  [[nodiscard]] bool averages_round() const { return spec_.averages && spec_.in_rounds(); }
  // True if a step by these whole gradients needs memory for their sum.
  [[nodiscard]] bool sums(std::vector<Push> const& gradients) const {
    return gradients.size() > 1 || spec_.in_rounds();
  }
  // Returns the gradient of pushes of rows, and sets the rows in `merged`, relative to the shard. A single push of
  // distinct rows is used as it is; others are merged.
  [[nodiscard]] Gradient merge(std::span<Push const> pushes, MergedRows& merged) const;

  ShardSpec const& spec_;
  tensors::Pool& pool_;
  Optimizer optimizer_;
  std::shared_ptr<tensors::Block> values_;
};

}  // namespace chorus::parameters
