// Conversion of tensors to vectors with blocks. A row has the elements of one index of the first dimension, and a block
// consists of whole rows. So gather concatenates the ranks' tensors along their first dimension, and scatter divides a
// tensor along it, whatever the other dimensions are.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collectives/plan/sizes/sizes.hpp"

namespace chorus::plan {

using TensorShape = std::vector<std::uint64_t>;

struct Rows {
  std::uint64_t count = 1;     // a scalar is one row
  std::uint64_t elements = 1;  // per row
};
// Returns the rows of a tensor. The product of the dimensions fits 64 bits.
[[nodiscard]] Rows rows_of(TensorShape const& shape);
// Returns the shape with another number of rows; a scalar becomes a vector.
[[nodiscard]] TensorShape with_rows(TensorShape shape, std::uint64_t rows);

// Returns the number of rows of each rank; they differ by one at most, and the first ranks have more.
[[nodiscard]] std::vector<std::uint64_t> split_rows(std::uint64_t rows, std::uint32_t ranks);

// Returns the elements of so many rows, block by block.
[[nodiscard]] std::vector<std::uint64_t> times(std::span<std::uint64_t const> rows, std::uint64_t row_elements);

// Returns the sizes of a vector whose block r has rows[r] rows; in the form without counts if blocks are even.
[[nodiscard]] Sizes sizes_of_blocks(std::span<std::uint64_t const> rows, std::uint64_t row_elements);
// Returns the sizes of an all_to_all for the rows that one rank sends to each rank and receives from each.
[[nodiscard]] Sizes sizes_of_exchange(std::span<std::uint64_t const> sent_rows,
                                      std::span<std::uint64_t const> received_rows, std::uint64_t row_elements);

}  // namespace chorus::plan
