// The arithmetic of one change of a shard: gradients of several clients become one, and that is stepped.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/parameters/optimizers/optimizer.hpp"
#include "worker/parameters/shard/push.hpp"
#include "worker/parameters/shard/rows.hpp"

namespace chorus::parameters {

// ((g0 + g1) + g2) ..., divided by their number if `averages`: the bits of a reproducible all_reduce over clients in
// this order. Whole gradients of one dtype, of which the elements from first_element on, as many as `sum` has room for.
void sum_gradients(std::span<Push const> gradients, bool averages, std::uint64_t first_element,
                   std::span<std::byte> sum);

// Pushes of rows as one, each row once, ascending; the same sums where rows are repeated, in the order of the pushes
// and of their repetitions. Row numbers become those within `range`.
struct MergedRows {
  std::vector<std::uint64_t> rows;
  std::vector<std::byte> gradient;  // a row for each
};
[[nodiscard]] MergedRows merge_rows(std::span<Push const> pushes, bool averages, std::uint64_t row_elements,
                                    RowRange range);

[[nodiscard]] std::span<std::uint64_t const> rows_of(Push const& push);
[[nodiscard]] Gradient gradient_of(Push const& push);  // without the row numbers

}  // namespace chorus::parameters
