// Readiness: arrival times of all data on all ranks, the state of a simulation.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/core/assert.hpp"
#include "collectives/model/time/interval.hpp"
#include "collectives/plan/instruction.hpp"

namespace chorus::model {

// If ranks times chunks would be too many entries, neighbouring chunks share a cell. Such a cell has the time of the
// last write, which delays uses of its other chunks.
class Readiness {
 public:
  // Each rank has so many chunks of output and of scratch. In place the output is the input; otherwise inputs are ready
  // from the start.
  Readiness(std::uint32_t ranks, std::uint32_t output_chunks, std::uint32_t scratch_chunks, bool in_place);

  // Returns the arrival of a range. Its segments can be used one by one only if one write had exactly this range.
  [[nodiscard]] Interval of(plan::Rank rank, plan::Slice range) const {
    auto const& rows = rows_of(range.buffer);
    if (rows.cells == 0) return {};
    auto const cell = rows.cell(rank, range.chunk);
    if (rows.is_one_cell(range)) return seen(cells_[cell], tag_of(range));
    return of_many(rank, range);
  }

  // Sets the arrival of a written range. Not for the input, unless it is the output.
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
    std::uint64_t tag = 0;  // of the written range
  };
  // The cells of one buffer of all ranks.
  struct Rows {
    std::size_t begin = 0;
    std::uint32_t cells = 0;  // per rank; 0: ready from the start
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
