// The existing rows of a shard with lazy rows, and their places in the shard's arrays. Places follow the order of
// creation, which is that of the pushes, so every copy of a shard has the same places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "worker/parameters/shard/pushes/rows.hpp"

namespace chorus::parameters {

// A value. About 60 bytes per row.
class RowIndex {
 public:
  RowIndex() = default;
  // Makes an index of these rows; nothing if a row is repeated or outside of the range.
  [[nodiscard]] static std::optional<RowIndex> from(std::span<std::uint64_t const> rows, RowRange range);

  [[nodiscard]] std::optional<std::uint64_t> place(std::uint64_t row) const;
  void add(std::uint64_t row);  // adds a new row at the place size()

  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  [[nodiscard]] std::span<std::uint64_t const> rows() const { return rows_; }  // by place

 private:
  std::vector<std::uint64_t> rows_;
  std::unordered_map<std::uint64_t, std::uint64_t> places_;
};

}  // namespace chorus::parameters
