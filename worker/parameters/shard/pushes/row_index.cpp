#include "worker/parameters/shard/pushes/row_index.hpp"

namespace chorus::parameters {

std::optional<RowIndex> RowIndex::from(std::span<std::uint64_t const> rows, RowRange range) {
  RowIndex index;
  for (auto const row : rows) {
    if (row < range.begin || row >= range.end || index.place(row)) return std::nullopt;
    index.add(row);
  }
  return index;
}

std::optional<std::uint64_t> RowIndex::place(std::uint64_t row) const {
  auto const found = places_.find(row);
  if (found == places_.end()) return std::nullopt;
  return found->second;
}

void RowIndex::add(std::uint64_t row) {
  places_.emplace(row, rows_.size());
  rows_.push_back(row);
}

}  // namespace chorus::parameters
