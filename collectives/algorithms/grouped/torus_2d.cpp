// torus_2d: reduce-scatter in the rows of a grid, ring all_reduce in its columns, all-gather in the rows.
//
// Steps: 2 (rows - 1) + 2 (columns - 1), against 2 (p - 1) of one ring. Bytes: every rank sends 2 (p-1)/p n, the
// minimum; only 1/columns of the vector crosses between rows. Best for long vectors on many ranks, and if rows are
// hosts: then the slow network carries little.
//
// Shape: rows, columns; rank = row * columns + column, so a row is neighbouring ranks. Empty: as square as possible.
//
// Source: Mikami et al. (Sony), "Massively Distributed SGD: ImageNet/ResNet-50 Training in a Flash", 2018.
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

Levels levels(Spec const& spec) {
  auto const [rows, columns] = grid_of(spec);
  Levels levels(Exchange::in_ring);
  levels.add(columns, 1);
  levels.add(rows, columns);
  return levels;
}

std::uint32_t chunks(Spec const& spec) { return spec.ranks; }

std::uint32_t rounds(Spec const& spec, Rank) { return spec.ranks == 1 ? 1 : levels(spec).rounds(); }

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  if (spec.ranks == 1) return emit_alone(sink);
  levels(spec).emit(rank, round, {0, spec.ranks}, sink);
}

std::vector<Shape> shapes(std::uint32_t ranks) {
  auto const [rows, columns] = squarest_grid(ranks);
  return {{columns, rows}, {1, ranks}, {ranks, 1}};
}

}  // namespace

plan::Algorithm const torus_2d{
    .name = "torus_2d",
    .summary = "rings in rows, then in columns: 2(rows-1) + 2(columns-1) steps, 2(p-1)/p n bytes per rank",
    .check = check,
    .chunks = chunks,
    .scratch_chunks = no_scratch,
    .rounds = rounds,
    .emit = emit,
    .shapes = shapes,
};

}  // namespace chorus::algorithms
