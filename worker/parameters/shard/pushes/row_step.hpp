// A step of selected rows of a shard, which several threads may compute together.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "worker/parameters/optimizers/optimizer.hpp"
#include "worker/parameters/shard/pushes/push.hpp"
#include "worker/parameters/shard/pushes/step.hpp"

namespace chorus::parameters {

// Call begin() once, then compute() for parts of [0, elements_max(pushes)), each element once, on any threads. Elements
// are counted in the gradient: the step of row i of the gradient belongs to the part with its first element. The bits
// of the result do not depend on the parts. The optimizer outlives the step.
class RowStep {
 public:
  // The number of elements that the pushes have together.
  [[nodiscard]] static std::uint64_t elements_max(std::vector<Push> const& pushes, std::uint64_t row_elements);

  // `pushes` are kept until the step is destroyed, because the gradient may be in their memory.
  RowStep(Optimizer& optimizer, std::vector<Push> pushes, std::uint64_t row_elements);

  [[nodiscard]] std::vector<Push> const& pushes() const { return pushes_; }
  // `values`: of the whole shard. `rows`: distinct rows of it, and the gradient with one row for each, which is in
  // `rows` or in the pushes.
  void begin(std::shared_ptr<tensors::Block> values, MergedRows rows, Gradient gradient);
  void compute(std::uint64_t first, std::uint64_t count);

 private:
  Optimizer& optimizer_;
  std::vector<Push> const pushes_;
  std::uint64_t const row_elements_;
  std::shared_ptr<tensors::Block> values_;
  MergedRows rows_;
  Gradient gradient_;
  std::optional<double> norm_;  // of the gradient
};

}  // namespace chorus::parameters
