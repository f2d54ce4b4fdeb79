#include "worker/parameters/shard/pushes/row_step.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace chorus::parameters {

std::uint64_t RowStep::elements_max(std::vector<Push> const& pushes, std::uint64_t row_elements) {
  std::uint64_t rows = 0;
  for (auto const& push : pushes) rows += push.rows;
  return rows * row_elements;
}

RowStep::RowStep(Optimizer& optimizer, std::vector<Push> pushes, std::uint64_t row_elements)
    : optimizer_(optimizer), pushes_(std::move(pushes)), row_elements_(row_elements) {}

void RowStep::begin(std::shared_ptr<tensors::Block> values, MergedRows rows, Gradient gradient) {
  values_ = std::move(values);
  rows_ = std::move(rows);
  gradient_ = gradient;
  // The norm of several gradients is that of their sum.
  if (pushes_.size() == 1) norm_ = pushes_.front().norm;
  if (optimizer_.wants_norm() && !norm_) norm_ = std::sqrt(squared_norm(gradient_));
}

void RowStep::compute(std::uint64_t first, std::uint64_t count) {
  auto const row_after = [&](std::uint64_t element) {
    return std::min<std::uint64_t>((element + row_elements_ - 1) / row_elements_, rows_.rows.size());
  };
  auto const begin = row_after(first), end = row_after(first + count);
  if (begin == end) return;
  auto const row_bytes = row_elements_ * element_bytes(gradient_.dtype);
  optimizer_.step_rows(values_->bytes(), std::span(rows_.rows).subspan(begin, end - begin),
                       {gradient_.bytes.subspan(begin * row_bytes, (end - begin) * row_bytes), gradient_.dtype}, norm_);
}

}  // namespace chorus::parameters
