// A step of all elements of a shard, which several threads may take together.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/parameters/optimizers/optimizer.hpp"
#include "worker/parameters/shard/push.hpp"

namespace chorus::parameters {

// begin() once, then compute() for parts that cover the shard, each element once, from any threads. The bits do not
// depend on the parts. The optimizer outlives it.
class DenseStep {
 public:
  struct Values {
    std::shared_ptr<tensors::Block const> before;
    std::shared_ptr<tensors::Block> after;  // may be the same
  };
  // Whole gradients, in the order in which they are summed; `sum` has the size of each, and is null where the one
  // gradient there is needs no summing.
  DenseStep(Optimizer& optimizer, Values values, std::vector<Push> gradients, std::shared_ptr<tensors::Block> sum,
            bool averages);

  void begin();
  void compute(std::uint64_t first, std::uint64_t count);

 private:
  void add_up(std::uint64_t first, std::uint64_t count);
  // That is stepped by.
  [[nodiscard]] Gradient gradient(std::uint64_t first, std::uint64_t count) const;

  Optimizer& optimizer_;
  Values const values_;
  std::vector<Push> const gradients_;
  std::shared_ptr<tensors::Block> const sum_;
  bool const averages_;
  Step step_;
};

}  // namespace chorus::parameters
