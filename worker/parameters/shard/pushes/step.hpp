// Sums the gradients of several clients for one step of a shard.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/parameters/optimizers/optimizer.hpp"
#include "worker/parameters/shard/pushes/push.hpp"
#include "worker/parameters/shard/pushes/rows.hpp"

namespace chorus::parameters {

// Computes ((g0 + g1) + g2) ..., divided by their number if `averages`, with the bits of a reproducible all_reduce over
// clients in this order. `gradients`: whole gradients of one dtype. `sum`: the elements from first_element on.
void sum_gradients(std::span<Push const> gradients, bool averages, std::uint64_t first_element,
                   std::span<std::byte> sum);

// Pushes of rows merged into one, each row once, ascending. Repeated rows are summed in the order of the pushes and of
// their repetitions. Row numbers are relative to `range`.
struct MergedRows {
  std::vector<std::uint64_t> rows;
  std::vector<std::byte> gradient;  // one row of values for each
};
[[nodiscard]] MergedRows merge_rows(std::span<Push const> pushes, bool averages, std::uint64_t row_elements,
                                    RowRange range);

[[nodiscard]] std::span<std::uint64_t const> rows_of(Push const& push);
[[nodiscard]] Gradient gradient_of(Push const& push);  // without the row numbers

// Sum of the squares of a push as a step uses it: repeated rows are summed first. row_elements: of pushes of rows.
[[nodiscard]] double squared_norm_of(Push const& push, std::uint64_t row_elements);
// Euclidean norm of a push as its owners apply it. zeroes_nonfinite: they set NaN and infinity to 0 first.
[[nodiscard]] double norm_of(Push const& push, std::uint64_t row_elements, bool zeroes_nonfinite);
// True if no row is repeated and all are in order, so that the push is used as it is.
[[nodiscard]] bool has_ascending_rows(Push const& push);

}  // namespace chorus::parameters
