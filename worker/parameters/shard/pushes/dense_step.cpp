#include "worker/parameters/shard/pushes/dense_step.hpp"

#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "worker/parameters/shard/pushes/step.hpp"

namespace chorus::parameters {

DenseStep::DenseStep(Optimizer& optimizer, Values values, std::vector<Push> gradients,
                     std::shared_ptr<tensors::Block> sum, bool averages)
    : optimizer_(optimizer),
      values_(std::move(values)),
      gradients_(std::move(gradients)),
      sum_(std::move(sum)),
      averages_(averages) {}

// The norm of several gradients is that of their sum. So if a norm is needed, the sum is computed first.
void DenseStep::begin() {
  if (!optimizer_.wants_norm()) {
    step_ = optimizer_.begin_step();
    return;
  }
  if (!sum_ && gradients_.front().norm) {
    step_ = optimizer_.begin_step(gradients_.front().norm);
    return;
  }
  if (sum_) add_up(0, optimizer_.elements());
  step_ = optimizer_.begin_step(std::sqrt(squared_norm(gradient(0, optimizer_.elements()))));
}

void DenseStep::compute(std::uint64_t first, std::uint64_t count) {
  auto const each = element_bytes(optimizer_.dtype());
  auto const after = values_.after->bytes().subspan(first * each, count * each);
  if (values_.before != values_.after && !after.empty())
    std::memcpy(after.data(), values_.before->data() + first * each, after.size());
  if (sum_ && !optimizer_.wants_norm()) add_up(first, count);
  optimizer_.apply(step_, after, first, gradient(first, count));
}

void DenseStep::add_up(std::uint64_t first, std::uint64_t count) {
  auto const each = element_bytes(gradients_.front().dtype);
  sum_gradients(gradients_, averages_, first, sum_->bytes().subspan(first * each, count * each));
}

Gradient DenseStep::gradient(std::uint64_t first, std::uint64_t count) const {
  auto const dtype = gradients_.front().dtype;
  auto const each = element_bytes(dtype);
  auto const& whole = sum_ ? std::as_const(*sum_) : *gradients_.front().data;
  return {whole.bytes().subspan(first * each, count * each), dtype};
}

}  // namespace chorus::parameters
