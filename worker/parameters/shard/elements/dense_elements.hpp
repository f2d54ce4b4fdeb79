// Elements in host memory, all of them.
#pragma once

#include "worker/parameters/shard/elements/elements.hpp"

namespace chorus::parameters {

class DenseElements final : public Elements {
 public:
  DenseElements(ShardSpec const& spec, tensors::Pool& pool, Optimizer optimizer,
                std::shared_ptr<tensors::Block> values);

  [[nodiscard]] Status prepare_values(ElementsChange& change, std::shared_ptr<tensors::Block const> data) override;
  [[nodiscard]] Status prepare_step(ElementsChange& change, std::vector<Push> gradients) override;
  [[nodiscard]] Status add_arrays(std::vector<ShardImage::Array>& arrays) override;
  using Elements::place_for;
  [[nodiscard]] std::optional<std::span<std::byte>> place_for(std::string_view array) override;

 private:
  [[nodiscard]] Status prepare_target(ElementsChange& change);
  void prepare_rows(ElementsChange& change, std::vector<Push> gradients);
};

}  // namespace chorus::parameters
