// How tensors become vectors with blocks: a block is whole rows, a row being what one index of the first dimension
// holds. So a gathered tensor is the concatenation of the ranks' tensors along their first dimension, and a scattered
// one falls apart along it, whatever the other dimensions are.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collectives/plan/sizes.hpp"

namespace chorus::plan {

using TensorShape = std::vector<std::uint64_t>;

struct Rows {
  std::uint64_t count = 1;     // a scalar is one row
  std::uint64_t elements = 1;  // of a row
};
// The product fits 64 bits.
[[nodiscard]] Rows rows_of(TensorShape const& shape);
// The shape with another number of rows; of a scalar, a vector.
[[nodiscard]] TensorShape with_rows(TensorShape shape, std::uint64_t rows);

// So many rows split among so many ranks, the first ones getting one more where it does not come out even.
[[nodiscard]] std::vector<std::uint64_t> split_rows(std::uint64_t rows, std::uint32_t ranks);

// Sizes of a vector whose block r has rows[r] rows: said shortly where the blocks are even.
[[nodiscard]] Sizes sizes_of_blocks(std::span<std::uint64_t const> rows, std::uint64_t row_elements);
// For all_to_all: what one rank sends to each, and gets from each.
[[nodiscard]] Sizes sizes_of_exchange(std::span<std::uint64_t const> sent_rows,
                                      std::span<std::uint64_t const> received_rows, std::uint64_t row_elements);

}  // namespace chorus::plan
