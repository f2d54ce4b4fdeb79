// A step of all elements of a shard, which several threads may compute together.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/parameters/optimizers/optimizer.hpp"
#include "worker/parameters/shard/pushes/push.hpp"

namespace chorus::parameters {

// Call begin() once, then compute() for parts that cover the shard, each element once, on any threads. The bits of the
// result do not depend on the parts. The optimizer outlives the step.
class DenseStep {
 public:
  struct Values {
    std::shared_ptr<tensors::Block const> before;
    std::shared_ptr<tensors::Block> after;  // may be the same
  };
  // `gradients`: whole gradients in the order of their sum. `sum`: memory for the sum, as large as a gradient; null for
  // a single gradient.
  DenseStep(Optimizer& optimizer, Values values, std::vector<Push> gradients, std::shared_ptr<tensors::Block> sum,
            bool averages);

  void begin();
  void compute(std::uint64_t first, std::uint64_t count);

 private:
  void add_up(std::uint64_t first, std::uint64_t count);
  // Returns the gradient of the step, for these elements.
  [[nodiscard]] Gradient gradient(std::uint64_t first, std::uint64_t count) const;

  Optimizer& optimizer_;
  Values const values_;
  std::vector<Push> const gradients_;
  std::shared_ptr<tensors::Block> const sum_;
  bool const averages_;
  Step step_;
};

}  // namespace chorus::parameters
