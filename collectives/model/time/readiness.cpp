#include "collectives/model/time/readiness.hpp"

#include <bit>

namespace chorus::model {
namespace {

// Limit for one buffer of all ranks. More cells than these 3 MB would not fit in the processor's cache.
constexpr std::uint32_t most_cells = 1 << 15;

template <class Rows, class Visit>
void for_each_cell(Rows const& rows, plan::Rank rank, plan::Slice range, Visit visit) {
  if (range.stride == 1) {
    auto const last = rows.cell(rank, range.chunk + range.count - 1);
    for (auto at = rows.cell(rank, range.chunk); at <= last; ++at) visit(at);
  } else {
    for (std::uint32_t i = 0; i < range.count; ++i) visit(rows.cell(rank, range.chunk + i * range.stride));
  }
}

}  // namespace

Readiness::Readiness(std::uint32_t ranks, std::uint32_t output_chunks, std::uint32_t scratch_chunks, bool in_place) {
  auto& [input, output, scratch] = rows_;
  output = make_rows(ranks, output_chunks);
  scratch = make_rows(ranks, scratch_chunks);
  if (in_place) input = output;
}

Interval Readiness::of_many(plan::Rank rank, plan::Slice range) const {
  Interval ready;
  bool as_one = true;
  auto const tag = tag_of(range);
  for_each_cell(rows_of(range.buffer), rank, range, [&](std::size_t at) {
    auto const& cell = cells_[at];
    ready = later(ready, cell.ready);
    as_one = as_one && (cell.tag == tag || cell.ready.last_s == 0);
  });
  if (!as_one) ready.first_s = ready.last_s;
  return ready;
}

void Readiness::set_many(plan::Rank rank, plan::Slice range, Interval ready) {
  auto const tag = tag_of(range);
  for_each_cell(rows_of(range.buffer), rank, range, [&](std::size_t at) { cells_[at] = {ready, tag}; });
}

Readiness::Rows Readiness::make_rows(std::uint32_t ranks, std::uint32_t chunks) {
  Rows rows;
  rows.begin = cells_.size();
  if (chunks == 0) return rows;
  auto const most = std::max(most_cells / ranks, 1u);
  while ((chunks - 1) >> rows.shift >= most) ++rows.shift;
  rows.cells = ((chunks - 1) >> rows.shift) + 1;
  cells_.resize(cells_.size() + std::size_t{ranks} * rows.cells);
  return rows;
}

}  // namespace chorus::model
