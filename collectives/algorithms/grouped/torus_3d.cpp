// torus_3d: reduce-scatter in rings level by level, from neighbouring ranks outwards, and all-gather back.
//
// Steps: 2 sum (extent - 1): about 6 cbrt(p) for three levels. Bytes: every rank sends 2 (p-1)/p n, the minimum, and at
// each level only the part that the levels below have left: for d1, d2, d3 ranks n, n/d1 and n/(d1 d2) per rank. Best
// where hosts, racks and zones differ in speed: every switch carries as little as possible.
//
// Shape: the extents, slowest first, any number of them; their product is p, and neighbouring ranks differ in the last.
// So 3 zones of 4 hosts of 8 GPUs are 3,4,8. Empty: three extents, as equal as possible.
//
// Source: Cho, Finkler, Kung, Hunter (IBM), "BlueConnect", MLSys 2019.
#include "collectives/algorithms/common/common.hpp"
#include "collectives/algorithms/grouped/algorithms.hpp"
#include "collectives/algorithms/grouped/levels.hpp"

namespace chorus::algorithms {
namespace {

using plan::Rank, plan::Shape, plan::Sink, plan::Spec;

// Returns three extents whose product is the number of ranks, slowest first.
std::array<std::uint32_t, 3> roundest_box(std::uint32_t ranks) {
  auto cube_root = std::uint32_t{1};
  while (std::uint64_t{cube_root + 1} * (cube_root + 1) * (cube_root + 1) <= ranks) ++cube_root;
  auto const depth = largest_divisor(ranks, cube_root);
  auto const [rows, columns] = squarest_grid(ranks / depth);
  return {depth, rows, columns};
}

Status check(Spec const& spec) {
  auto const status = only<Op::all_reduce>(spec);
  if (status.has_error() || spec.shape.empty()) return status;
  auto const box = roundest_box(spec.ranks);
  return check_extents(spec, 0, "extents", {box.begin(), box.end()});
}

Levels levels(Spec const& spec) {
  if (!spec.shape.empty()) return levels_of(spec.shape, Exchange::in_ring);
  auto const [slowest, middle, fastest] = roundest_box(spec.ranks);
  Levels levels(Exchange::in_ring);
  levels.add(fastest, 1);
  levels.add(middle, fastest);
  levels.add(slowest, fastest * middle);
  return levels;
}

std::uint32_t chunks(Spec const& spec) { return spec.ranks; }

std::uint32_t rounds(Spec const& spec, Rank) { return spec.ranks == 1 ? 1 : levels(spec).rounds(); }

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  if (spec.ranks == 1) return emit_alone(sink);
  levels(spec).emit(rank, round, {0, spec.ranks}, sink);
}

// Returns the default extents in reverse order, a single level, and one level per prime factor.
std::vector<Shape> shapes(std::uint32_t ranks) {
  auto const box = roundest_box(ranks);
  Shape primes;
  for (auto rest = ranks, factor = std::uint32_t{2}; rest > 1;) {
    if (rest % factor == 0) {
      primes.push_back(factor);
      rest /= factor;
    } else {
      ++factor;
    }
  }
  std::vector<Shape> shapes{{box.rbegin(), box.rend()}, {ranks}};
  if (primes.size() > 1) shapes.push_back(primes);
  return shapes;
}

}  // namespace

plan::Algorithm const torus_3d{
    .name = "torus_3d",
    .summary = "rings level by level and back: 2 sum(extent-1) steps, 2(p-1)/p n bytes per rank, little of it far",
    .check = check,
    .chunks = chunks,
    .scratch_chunks = no_scratch,
    .rounds = rounds,
    .emit = emit,
    .shapes = shapes,
};

}  // namespace chorus::algorithms
