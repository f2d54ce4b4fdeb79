// The encoding of selected rows of a parameter: `count` row numbers (u64, little-endian, ascending, repetitions
// allowed), followed, in a push, by as many rows of values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "http/json/problem.hpp"

namespace chorus::parameters {

struct RowRange {
  std::uint64_t begin = 0, end = 0;
};

// Returns the row numbers at the beginning of `bytes`, which are aligned to 8. Problems: length_mismatch unless the
// bytes are exactly `count` numbers and rows of row_bytes each (0: numbers alone); invalid_field, naming the first
// wrong number, if numbers are not ascending or outside of `range`.
[[nodiscard]] http::Checked<std::span<std::uint64_t const>> check_rows(std::span<std::byte const> bytes,
                                                                       std::uint64_t count, std::uint64_t row_bytes,
                                                                       RowRange range);

// The part of ascending `rows` in `range`.
struct RowPart {
  std::size_t first = 0, count = 0;
};
[[nodiscard]] RowPart part_of(std::span<std::uint64_t const> rows, RowRange range);

}  // namespace chorus::parameters
