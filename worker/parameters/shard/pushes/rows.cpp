#include "worker/parameters/shard/pushes/rows.hpp"

#include <algorithm>
#include <string>

namespace chorus::parameters {

http::Checked<std::span<std::uint64_t const>> check_rows(std::span<std::byte const> bytes, std::uint64_t count,
                                                         std::uint64_t row_bytes, RowRange range) {
  auto const each = sizeof(std::uint64_t) + row_bytes;
  if (count > bytes.size() / each || count * each != bytes.size())
    return http::Problem(http::ProblemCode::length_mismatch,
                         "the body has " + std::to_string(bytes.size()) + " bytes; " + std::to_string(count) +
                             " rows are expected to have " + std::to_string(each) + " bytes each");
  std::span const rows(reinterpret_cast<std::uint64_t const*>(bytes.data()), count);
  auto const wrong = [](std::size_t i, std::string const& why) {
    http::Problem problem(http::ProblemCode::invalid_field, "row number " + std::to_string(i) + " of the body " + why);
    problem.errors.push_back({"/rows/" + std::to_string(i), why});
    return problem;
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < range.begin || rows[i] >= range.end)
      return wrong(i, "is " + std::to_string(rows[i]) + ", expected " + std::to_string(range.begin) + " to " +
                          std::to_string(range.end) + ", exclusive");
    if (i > 0 && rows[i] < rows[i - 1])
      return wrong(i, "is " + std::to_string(rows[i]) + ", after " + std::to_string(rows[i - 1]) +
                          ": they are expected in ascending order");
  }
  return rows;
}

RowPart part_of(std::span<std::uint64_t const> rows, RowRange range) {
  auto const first = std::ranges::lower_bound(rows, range.begin);
  auto const last = std::lower_bound(first, rows.end(), range.end);
  return {static_cast<std::size_t>(first - rows.begin()), static_cast<std::size_t>(last - first)};
}

}  // namespace chorus::parameters
