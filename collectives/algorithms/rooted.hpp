// What moves along the edges of a tree that hangs from the root, whatever the shape of the tree.
//
// Ranks are counted from the root on, around the ring of ranks: the root has place 0, the next rank place 1, and so on.
// The trees that use this are numbered so that the places of a subtree follow one another, the node's own first. Then
// the blocks of a subtree are one range of chunks, or two where they wrap around the last rank.
#pragma once

#include <algorithm>

#include "collectives/plan/algorithm.hpp"

namespace chorus::algorithms {

// Whether data flows to the root, from it, or first to it and then from it.
[[nodiscard]] constexpr bool goes_up(Op op) { return op != Op::broadcast && op != Op::scatter; }
[[nodiscard]] constexpr bool goes_down(Op op) { return op != Op::reduce && op != Op::gather; }
[[nodiscard]] constexpr std::uint32_t directions(Op op) { return goes_up(op) && goes_down(op) ? 2 : 1; }

[[nodiscard]] inline std::uint32_t place_of(plan::Spec const& spec, plan::Rank rank) {
  return rank >= spec.root ? rank - spec.root : rank + spec.ranks - spec.root;
}
[[nodiscard]] inline plan::Rank rank_at(plan::Spec const& spec, std::uint32_t place) {
  return (place + spec.root) % spec.ranks;
}

// use(first, count) for the chunks first, first + 1, ... of a ring of C: one range, or two where they wrap.
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

// For Algorithm::scratch_chunks of algorithms that use the moves below, with chunk_per_block.
[[nodiscard]] std::uint32_t rooted_scratch(plan::Spec const& spec, plan::Rank rank);

// What a rank does for itself. In round 0, for everyone.
void keep_own(plan::Spec const& spec, Subtree const& own, plan::Sink& sink);

// Up. A node takes from all its children before it gives.
enum class Turn : bool { first, later };
void give_up(plan::Spec const& spec, Subtree const& own, plan::Rank parent, plan::Sink& sink);
void take_up(plan::Spec const& spec, Subtree const& own, Subtree const& child, Turn turn, plan::Final final,
             plan::Sink& sink);

// Down. A node takes before it gives.
void give_down(plan::Spec const& spec, Subtree const& own, Subtree const& child, plan::Sink& sink);
void take_down(plan::Spec const& spec, Subtree const& own, plan::Rank parent, plan::Sink& sink);

}  // namespace chorus::algorithms
