// All_reduce level by level: the common part of torus_2d, torus_3d, mesh_2d and bcube.
//
// The ranks are the points of a grid. At every level the ranks that differ only in this level's coordinate are a group:
// they reduce-scatter among themselves the part of the vector that the levels before have left them. Then the levels
// all-gather in reverse. For sizes s1, s2, ...: 2 sum (s - 1) steps, and every rank sends 2 (p-1)/p n, the minimum,
// most of it at the first level.
#pragma once

#include <array>
#include <cstdint>

#include "collectives/plan/algorithm.hpp"
#include "collectives/plan/holding.hpp"

namespace chorus::algorithms {

enum class Exchange : bool {
  in_ring,      // parts go from member to member: two partners
  among_pairs,  // every part goes straight to its owner, staggered: size - 1 partners
};

class Levels {
 public:
  explicit Levels(Exchange exchange) : exchange_(exchange) {}

  // Adds the next level: groups of `size` ranks that are `stride` apart. The product of all sizes is the number of
  // ranks; a size of one adds nothing.
  void add(std::uint32_t size, std::uint32_t stride);

  [[nodiscard]] std::uint32_t rounds() const { return 2 * steps_; }

  // Emits a round of the all_reduce of `vector`, whose chunks are a multiple of the ranks. round < rounds().
  void emit(plan::Rank rank, std::uint32_t round, plan::ChunkRange vector, plan::Sink& sink) const;

 private:
  struct Level {
    std::uint32_t size;
    std::uint32_t stride;
  };
  static constexpr std::size_t max_levels = 16;  // log2 of plan::max_ranks

  void emit_scatter(plan::Rank rank, std::size_t level, std::uint32_t step, plan::ChunkRange held,
                    plan::Sink& sink) const;
  void emit_gather(plan::Rank rank, std::size_t level, std::uint32_t step, plan::ChunkRange held,
                   plan::Sink& sink) const;

  Exchange exchange_;
  std::array<Level, max_levels> levels_{};
  std::size_t count_ = 0;
  std::uint32_t steps_ = 0;
};

// Returns levels from the fastest coordinate, whose ranks are neighbours, to the slowest. Extents are in row-major
// order.
[[nodiscard]] Levels levels_of(plan::Shape const& extents, Exchange exchange);

// Checks that `count` extents (any number if it is 0), none of them 0, multiply to the spec's ranks. Errors:
// PlanErrc::bad_parameter with `expected` and `example`.
[[nodiscard]] Status check_extents(plan::Spec const& spec, std::size_t count, std::string_view expected,
                                   plan::Shape const& example);

// Returns the largest divisor of n >= 1 that is at most `limit` >= 1.
[[nodiscard]] std::uint32_t largest_divisor(std::uint32_t n, std::uint32_t limit);

// Returns the largest r with r * r <= n.
[[nodiscard]] std::uint32_t square_root(std::uint32_t n);

// rows <= columns, rows * columns == ranks, as square as possible: 1 x p for a prime.
struct Grid {
  std::uint32_t rows;
  std::uint32_t columns;
};
[[nodiscard]] Grid squarest_grid(std::uint32_t ranks);

// Returns the grid of the spec's shape, or the squarest grid.
[[nodiscard]] Grid grid_of(plan::Spec const& spec);

}  // namespace chorus::algorithms
