// Arrival times of all data on all ranks: the memory of a simulation.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/core/assert.hpp"
#include "collectives/model/interval.hpp"
#include "collectives/plan/instruction.hpp"

namespace chorus::model {

// Ranks times chunks can be far too many entries; then neighbouring chunks share a cell. Such a cell has the time of
// the last write, which delays uses of its other chunks.
class Readiness {
 public:
  // For `ranks` ranks with this many chunks of output and of scratch each. In place the output is the input; otherwise
  // inputs are ready from the beginning.
  Readiness(std::uint32_t ranks, std::uint32_t output_chunks, std::uint32_t scratch_chunks, bool in_place);

  // Segments of the range can be used one by one if exactly this range was written as one.
  [[nodiscard]] Interval of(plan::Rank rank, plan::Slice range) const {
    auto const& rows = rows_of(range.buffer);
    if (rows.cells == 0) return {};
    auto const cell = rows.cell(rank, range.chunk);
    if (rows.is_one_cell(range)) return seen(cells_[cell], tag_of(range));
    return of_many(rank, range);
  }

  // Not for an input that is not the output.
  void set(plan::Rank rank, plan::Slice range, Interval ready) {
    auto const& rows = rows_of(range.buffer);
    CHORUS_ASSERT(rows.cells > 0, "what is written has cells");
    if (rows.is_one_cell(range))
      cells_[rows.cell(rank, range.chunk)] = {ready, tag_of(range)};
    else
      set_many(rank, range, ready);
  }

 private:
  struct Cell {
    Interval ready;
    std::uint64_t tag = 0;  // of the range that was written
  };
  // The cells of one buffer of all ranks.
  struct Rows {
    std::size_t begin = 0;
    std::uint32_t cells = 0;  // per rank; 0: ready from the beginning
    std::uint32_t shift = 0;  // chunks per cell, as a power of two

    [[nodiscard]] std::size_t cell(plan::Rank rank, std::uint32_t chunk) const {
      return begin + std::size_t{rank} * cells + (chunk >> shift);
    }
    [[nodiscard]] bool is_one_cell(plan::Slice range) const {
      return range.count == 1 ||
             (range.stride == 1 && range.chunk >> shift == (range.chunk + range.count - 1) >> shift);
    }
  };

  [[nodiscard]] Rows const& rows_of(plan::Buffer buffer) const { return rows_[static_cast<std::size_t>(buffer)]; }
  static std::uint64_t tag_of(plan::Slice range) {
    return (std::uint64_t{range.chunk} << 32 | range.count) ^ (std::uint64_t{range.stride - 1} << 48);
  }
  static Interval seen(Cell const& cell, std::uint64_t tag) {
    return {cell.tag == tag ? cell.ready.first_s : cell.ready.last_s, cell.ready.last_s};
  }
  [[nodiscard]] Interval of_many(plan::Rank rank, plan::Slice range) const;
  void set_many(plan::Rank rank, plan::Slice range, Interval ready);
  Rows make_rows(std::uint32_t ranks, std::uint32_t chunks);

  std::vector<Cell> cells_;
  Rows rows_[3];  // by buffer
};

}  // namespace chorus::model
