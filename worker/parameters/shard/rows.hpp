// Selected rows of a parameter, as they travel: `count` row numbers (u64, little-endian, ascending, repetitions are
// allowed), and behind them, in a push, as many rows of values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "http/problem.hpp"

namespace chorus::parameters {

struct RowRange {
  std::uint64_t begin = 0, end = 0;
};

// The row numbers at the beginning of `bytes`, which are aligned to 8. Problems: length_mismatch unless there are
// exactly as many bytes as `count` rows with row_bytes each have (0: numbers alone); invalid_field for numbers that are
// not ascending, or outside of `range`, naming the first.
[[nodiscard]] http::Checked<std::span<std::uint64_t const>> check_rows(std::span<std::byte const> bytes,
                                                                       std::uint64_t count, std::uint64_t row_bytes,
                                                                       RowRange range);

// The part of ascending `rows` that lies in `range`.
struct RowPart {
  std::size_t first = 0, count = 0;
};
[[nodiscard]] RowPart part_of(std::span<std::uint64_t const> rows, RowRange range);

}  // namespace chorus::parameters
