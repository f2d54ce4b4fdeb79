// mesh_2d: torus_2d twice at once: half of the vector goes along the rows first, the other half along the columns.
//
// Steps: 2 (rows - 1) + 2 (columns - 1). Bytes: every rank sends 2 (p-1)/p n, but at any time half of it in each
// direction: twice the bandwidth of torus_2d if a row and a column use different links, no gain if they use one network
// card.
//
// Shape: rows, columns; rank = row * columns + column. Empty: as square as possible. Chunks 0 to p - 1 are the first
// half, p to 2p - 1 the second.
//
// Source: Ying et al. (Google), "Image Classification at Supercomputer Scale", 2018, with a reduce-scatter in place of
// whole vectors that circulate.
#include "collectives/algorithms/common/common.hpp"
#include "collectives/algorithms/grouped/algorithms.hpp"
#include "collectives/algorithms/grouped/levels.hpp"

namespace chorus::algorithms {
namespace {

using plan::Rank, plan::Shape, plan::Sink, plan::Spec;

Status check(Spec const& spec) {
  auto const status = only<Op::all_reduce>(spec);
  if (status.has_error() || spec.shape.empty()) return status;
  auto const [rows, columns] = squarest_grid(spec.ranks);
  return check_extents(spec, 2, "rows,columns", {rows, columns});
}

Levels rows_first(Grid grid) {
  Levels levels(Exchange::in_ring);
  levels.add(grid.columns, 1);
  levels.add(grid.rows, grid.columns);
  return levels;
}

Levels columns_first(Grid grid) {
  Levels levels(Exchange::in_ring);
  levels.add(grid.rows, grid.columns);
  levels.add(grid.columns, 1);
  return levels;
}

std::uint32_t chunks(Spec const& spec) { return spec.ranks == 1 ? 1 : 2 * spec.ranks; }

std::uint32_t rounds(Spec const& spec, Rank) { return spec.ranks == 1 ? 1 : rows_first(grid_of(spec)).rounds(); }

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  if (spec.ranks == 1) return emit_alone(sink);
  auto const grid = grid_of(spec);
  rows_first(grid).emit(rank, round, {0, spec.ranks}, sink);
  columns_first(grid).emit(rank, round, {spec.ranks, spec.ranks}, sink);
}

std::vector<Shape> shapes(std::uint32_t ranks) {
  auto const [rows, columns] = squarest_grid(ranks);
  return {{columns, rows}, {1, ranks}};
}

}  // namespace

plan::Algorithm const mesh_2d{
    .name = "mesh_2d",
    .summary = "both directions of a grid at once: 2(rows-1) + 2(columns-1) steps, 2(p-1)/p n bytes per rank",
    .check = check,
    .chunks = chunks,
    .scratch_chunks = no_scratch,
    .rounds = rounds,
    .emit = emit,
    .shapes = shapes,
};

}  // namespace chorus::algorithms
