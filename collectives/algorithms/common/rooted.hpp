// Messages along the edges of a tree below the root, for trees of any shape.
//
// Places are ranks counted from the root on, around the ring of ranks: the root has place 0, the next rank place 1.
// The trees that use this number a subtree's places consecutively, beginning with the node itself. So the blocks of a
// subtree are one range of chunks, or two if they wrap around the last rank.
#pragma once

#include <algorithm>

#include "collectives/plan/algorithm.hpp"

namespace chorus::algorithms {

// Directions of the operation: up to the root, down from it, or first up and then down.
[[nodiscard]] constexpr bool goes_up(Op op) { return op != Op::broadcast && op != Op::scatter; }
[[nodiscard]] constexpr bool goes_down(Op op) { return op != Op::reduce && op != Op::gather; }
[[nodiscard]] constexpr std::uint32_t directions(Op op) { return goes_up(op) && goes_down(op) ? 2 : 1; }

[[nodiscard]] inline std::uint32_t place_of(plan::Spec const& spec, plan::Rank rank) {
  return rank >= spec.root ? rank - spec.root : rank + spec.ranks - spec.root;
}
[[nodiscard]] inline plan::Rank rank_at(plan::Spec const& spec, std::uint32_t place) {
  return (place + spec.root) % spec.ranks;
}

// Calls use(first, count) for the chunks first, first + 1, ... of a ring of `chunks`: one range, or two if they wrap.
template <class Use>
void for_each_range(std::uint32_t first, std::uint32_t count, std::uint32_t chunks, Use use) {
  auto const head = std::min(count, chunks - first);
  use(first, head);
  if (count > head) use(0u, count - head);
}

// A node's subtree: the places [place, place + size).
struct Subtree {
  std::uint32_t place = 0;
  std::uint32_t size = 1;
  [[nodiscard]] bool is_root() const { return place == 0; }
  [[nodiscard]] bool is_leaf() const { return size == 1; }
};

// For Algorithm::scratch_chunks of algorithms that use the functions below, with chunk_per_block.
[[nodiscard]] std::uint32_t rooted_scratch(plan::Spec const& spec, plan::Rank rank);

// Emits a rank's local copies. Call it in round 0 for every rank.
void keep_own(plan::Spec const& spec, Subtree const& own, plan::Sink& sink);

// Place of a child among the children that a node receives from. To the first the node adds its own contribution.
enum class Turn : bool { first, later };
// Up the tree: a node receives from all its children (take_up) before it sends to its parent (give_up).
void give_up(plan::Spec const& spec, Subtree const& own, plan::Rank parent, plan::Sink& sink);
void take_up(plan::Spec const& spec, Subtree const& own, Subtree const& child, Turn turn, plan::Final final,
             plan::Sink& sink);

// Down the tree: a node receives from its parent (take_down) before it sends to its children (give_down).
void give_down(plan::Spec const& spec, Subtree const& own, Subtree const& child, plan::Sink& sink);
void take_down(plan::Spec const& spec, Subtree const& own, plan::Rank parent, plan::Sink& sink);

}  // namespace chorus::algorithms
