// Elements on a GPU. Pushes are copied to it through pinned memory, and steps run there. Readers get a copy in host
// memory, made once for each version. Pushes that wait for their round wait in host memory.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "worker/parameters/optimizers/gpu_elements.hpp"
#include "worker/parameters/shard/elements/elements.hpp"

namespace chorus::parameters {

class GpuShardElements final : public Elements {
 public:
  // `values`: copy of the values on the GPU, or null.
  GpuShardElements(ShardSpec const& spec, tensors::Pool& pool, Optimizer optimizer,
                   std::unique_ptr<GpuElements> elements, std::shared_ptr<tensors::Block> values)
      : Elements(spec, pool, std::move(optimizer)), gpu_(std::move(elements)) {
    values_ = std::move(values);
  }

  [[nodiscard]] std::uint64_t value_bytes() const override { return spec_.bytes(); }
  [[nodiscard]] devices::GpuUnit* gpu() const override { return &gpu_->unit(); }
  [[nodiscard]] Result<std::shared_ptr<tensors::Block>> download() const override;

  [[nodiscard]] Status prepare_values(ElementsChange& change, std::shared_ptr<tensors::Block const> data) override;
  [[nodiscard]] Status prepare_step(ElementsChange& change, std::vector<Push> gradients) override;

  [[nodiscard]] Status add_arrays(std::vector<ShardImage::Array>& arrays) override;
  // Host memory, until settle().
  using Elements::place_for;
  [[nodiscard]] std::optional<std::span<std::byte>> place_for(std::string_view array) override;
  [[nodiscard]] Status settle() override;

 private:
  [[nodiscard]] Status step(std::vector<Push> const& gradients, std::shared_ptr<tensors::Block> const& sum,
                            std::shared_ptr<GpuElements::Slots> const& slots);
  [[nodiscard]] Status step_rows(std::vector<Push> const& gradients, std::shared_ptr<GpuElements::Slots> const& slots);

  std::unique_ptr<GpuElements> const gpu_;                                        // values and state, except row_steps
  std::map<std::string, std::shared_ptr<tensors::Block>, std::less<>> arriving_;  // arrays of an image
};

}  // namespace chorus::parameters
