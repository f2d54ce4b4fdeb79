#include "worker/parameters/shard/pushes/step.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "worker/devices/reduce.hpp"
#include "worker/parameters/optimizers/nonfinite.hpp"

namespace chorus::parameters {
namespace {

struct Occurrence {
  std::uint64_t row;
  std::size_t order;  // in the sum of its row
  std::byte const* gradient;
};

// Returns every row of every push; equal rows are adjacent, in the order of their sum.
std::vector<Occurrence> occurrences_of(std::span<Push const> pushes, std::uint64_t row_bytes) {
  std::vector<Occurrence> all;
  for (auto const& push : pushes) {
    auto const* gradient = gradient_of(push).bytes.data();
    for (auto const row : rows_of(push)) {
      all.push_back({row, all.size(), gradient});
      gradient += row_bytes;
    }
  }
  std::ranges::sort(
      all, [](Occurrence const& a, Occurrence const& b) { return a.row != b.row ? a.row < b.row : a.order < b.order; });
  return all;
}

// Computes the sum or the average of a number of gradients.
class Merging {
 public:
  Merging(Dtype dtype, bool averages, std::size_t gradients)
      : reducer_(averages ? ReduceOp::avg : ReduceOp::sum, dtype) {
    how_.divisor = static_cast<std::uint32_t>(gradients);
    if (averages) compared_ = devices::compared_contributions(dtype, gradients);
    how_.scale = averages ? devices::scale_of_average(dtype, gradients) : 1;
    if (how_.scale != 1) weights_.assign(gradients, 1 / how_.scale);
  }
  void run(devices::ReduceArguments const& arguments) {
    if (!weights_.empty() && weights_.size() < arguments.source_count)
      weights_.resize(arguments.source_count, weights_[0]);
    auto how = how_;
    how.weights = weights_.empty() ? nullptr : weights_.data();
    if (arguments.source_count == how.divisor) {
      how.contributions = compared_;
      how.single = how.divisor - 1;
    }
    reducer_.run(arguments, how);
  }

 private:
  devices::Reducer const reducer_;
  devices::Reducer::How how_;
  std::uint32_t compared_ = 0;
  std::vector<float> weights_;
};

}  // namespace

void sum_gradients(std::span<Push const> gradients, bool averages, std::uint64_t first_element,
                   std::span<std::byte> sum) {
  std::vector<std::byte const*> sources;
  auto const dtype = gradients.front().dtype;
  for (auto const& push : gradients) sources.push_back(push.data->data() + first_element * element_bytes(dtype));
  auto* const destination = sum.data();
  Merging(dtype, averages, gradients.size())
      .run({.sources = sources.data(),
            .source_count = sources.size(),
            .destinations = &destination,
            .destination_count = 1,
            .elements = sum.size() / element_bytes(dtype)});
}

MergedRows merge_rows(std::span<Push const> pushes, bool averages, std::uint64_t row_elements, RowRange range) {
  auto const dtype = pushes.front().dtype;
  auto const row_bytes = row_elements * element_bytes(dtype);
  auto const all = occurrences_of(pushes, row_bytes);
  Merging merging(dtype, averages, pushes.size());
  MergedRows merged;
  merged.gradient.resize(all.size() * row_bytes);
  std::vector<std::byte const*> sources;
  auto* destination = merged.gradient.data();
  for (std::size_t i = 0; i < all.size();) {
    sources.clear();
    auto const row = all[i].row;
    for (; i < all.size() && all[i].row == row; ++i) sources.push_back(all[i].gradient);
    merging.run({.sources = sources.data(),
                 .source_count = sources.size(),
                 .destinations = &destination,
                 .destination_count = 1,
                 .elements = row_elements});
    merged.rows.push_back(row - range.begin);
    destination += row_bytes;
  }
  merged.gradient.resize(merged.rows.size() * row_bytes);
  return merged;
}

std::span<std::uint64_t const> rows_of(Push const& push) {
  return {reinterpret_cast<std::uint64_t const*>(push.data->data()), push.rows};
}

Gradient gradient_of(Push const& push) {
  auto const numbers = push.kind == PushKind::rows ? push.rows * sizeof(std::uint64_t) : 0;
  return {push.data->bytes().subspan(numbers), push.dtype};
}

bool has_ascending_rows(Push const& push) {
  auto const rows = rows_of(push);
  return std::ranges::adjacent_find(rows, std::greater_equal<>()) == rows.end();
}

double squared_norm_of(Push const& push, std::uint64_t row_elements) {
  if (push.kind != PushKind::rows || has_ascending_rows(push)) return squared_norm(gradient_of(push));
  auto const merged = merge_rows(std::span(&push, 1), false, row_elements, {0, UINT64_MAX});
  return squared_norm({merged.gradient, push.dtype});
}

double norm_of(Push const& push, std::uint64_t row_elements, bool zeroes_nonfinite) {
  auto const squared = squared_norm_of(push, row_elements);
  if (!zeroes_nonfinite || std::isfinite(squared)) return std::sqrt(squared);
  auto const gradient_bytes = gradient_of(push).bytes.size();
  std::vector<std::byte> content(push.data->bytes().begin(), push.data->bytes().end());
  zero_nonfinite(push.dtype, std::span(content).last(gradient_bytes));
  auto zeroed = push;
  zeroed.data = std::make_shared<tensors::Block const>(content.data(), content.size());
  return std::sqrt(squared_norm_of(zeroed, row_elements));
}

}  // namespace chorus::parameters
