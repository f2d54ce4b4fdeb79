#include "collectives/plan/sizes/rows.hpp"

#include <algorithm>
#include <numeric>

namespace chorus::plan {
namespace {

bool all_equal(std::span<std::uint64_t const> values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

}  // namespace

Rows rows_of(TensorShape const& shape) {
  if (shape.empty()) return {};
  return {shape.front(), std::accumulate(shape.begin() + 1, shape.end(), std::uint64_t{1}, std::multiplies<>())};
}

TensorShape with_rows(TensorShape shape, std::uint64_t rows) {
  if (shape.empty()) return {rows};
  shape.front() = rows;
  return shape;
}

std::vector<std::uint64_t> split_rows(std::uint64_t rows, std::uint32_t ranks) {
  Layout const layout(rows, ranks);
  std::vector<std::uint64_t> split(ranks);
  for (Rank rank = 0; rank < ranks; ++rank) split[rank] = layout.range(rank).size();
  return split;
}

std::vector<std::uint64_t> times(std::span<std::uint64_t const> rows, std::uint64_t row_elements) {
  std::vector<std::uint64_t> counts(rows.begin(), rows.end());
  for (auto& count : counts) count *= row_elements;
  return counts;
}

Sizes sizes_of_blocks(std::span<std::uint64_t const> rows, std::uint64_t row_elements) {
  if (all_equal(rows)) return {rows.front() * row_elements * rows.size(), {}, {}};
  return {0, times(rows, row_elements), {}};
}

Sizes sizes_of_exchange(std::span<std::uint64_t const> sent_rows, std::span<std::uint64_t const> received_rows,
                        std::uint64_t row_elements) {
  if (all_equal(sent_rows) && std::ranges::equal(sent_rows, received_rows))
    return {sent_rows.front() * row_elements * sent_rows.size(), {}, {}};
  return {0, times(sent_rows, row_elements), times(received_rows, row_elements)};
}

}  // namespace chorus::plan
