// tree: up a k-ary tree to the root, down the same tree, or both.
//
// Steps: about k ceil(log_k p) for each of the two directions: a node serves its children one after the other. Bytes:
// with whole vectors (reduce, broadcast) a node with k children sends and receives (k + 1) n, in all_reduce in both
// directions together; gather and scatter move whole subtrees of blocks, at the root (p-1)/p n. Few steps, so best for
// short vectors on many ranks; segments flow through all levels at once, so a long vector costs (k + 1) n rather than
// the depth of the tree. A barrier gathers signs of arrival and broadcasts them.
//
// Nodes are numbered in pre-order: a node's subtree has the numbers from its own on, divided among its children as
// evenly as possible. So the blocks of a subtree are one range; neighbouring ranks stay close in the tree, while the
// numbering of a heap would separate them; and no k-ary tree is less deep. Node 0 is the root, and rank r is node (r -
// root) mod p, so that any rank can be the root. Arity 1 is a chain, arity p - 1 a star. A node adds the contributions
// of its children, in ascending order, to its own.
//
// Source: the k-ary trees of MPICH and rabit.
#include <algorithm>

#include "collectives/algorithms/common/common.hpp"
#include "collectives/algorithms/common/rooted.hpp"
#include "collectives/algorithms/trees/algorithms.hpp"

namespace chorus::algorithms {
namespace {

using plan::Final, plan::Rank, plan::Sink, plan::Spec;

std::uint32_t arity_of(Spec const& spec) { return std::min(spec.arity, spec.ranks - 1); }

std::uint32_t depth_of_tree(Spec const& spec) {
  auto const arity = arity_of(spec);
  if (arity == 1) return spec.ranks - 1;
  auto depth = std::uint32_t{0};
  for (auto nodes = std::uint64_t{1}; nodes < spec.ranks; nodes = nodes * arity + 1) ++depth;
  return depth;
}

std::uint32_t rounds(Spec const& spec, Rank) {
  return spec.ranks == 1 ? 1 : directions(spec.op) * arity_of(spec) * depth_of_tree(spec);
}

struct Node {
  Subtree own;
  std::uint32_t arity = 1;
  std::uint32_t depth = 0;
  std::uint32_t parent = 0;  // place of the parent
  std::uint32_t number = 0;  // number among the parent's children, from 0

  [[nodiscard]] std::uint32_t children() const { return std::min(arity, own.size - 1); }
  [[nodiscard]] bool is_child(std::uint32_t n) const { return !own.is_root() && number == n; }

  // If the division leaves a remainder, the first children are one larger.
  [[nodiscard]] Subtree child(std::uint32_t n) const {
    auto const size = (own.size - 1) / arity, larger = (own.size - 1) % arity;
    return {own.place + 1 + n * size + std::min(n, larger), size + (n < larger ? 1 : 0)};
  }
  // Returns the child whose subtree has this place.
  [[nodiscard]] std::uint32_t child_towards(std::uint32_t place) const {
    auto const size = (own.size - 1) / arity, larger = (own.size - 1) % arity;
    auto const offset = place - own.place - 1;
    auto const in_larger = larger * (size + 1);
    return offset < in_larger ? offset / (size + 1) : larger + (offset - in_larger) / size;
  }
};

Node node_at(Spec const& spec, std::uint32_t place) {
  auto const arity = arity_of(spec);
  if (arity == 1) return {{place, spec.ranks - place}, 1, place, place - 1, 0};
  Node node{.own = {0, spec.ranks}, .arity = arity};
  while (node.own.place != place) {
    auto const n = node.child_towards(place);
    node = {node.child(n), arity, node.depth + 1, node.own.place, n};
  }
  return node;
}

// Emits the round in which the n-th children of one depth send to their parents.
void emit_up(Spec const& spec, Node const& node, std::uint32_t depth, std::uint32_t n, Sink& sink) {
  if (node.depth == depth && node.is_child(n)) give_up(spec, node.own, rank_at(spec, node.parent), sink);
  if (node.depth + 1 == depth && n < node.children()) {
    bool const last = node.own.is_root() && n + 1 == node.children();
    take_up(spec, node.own, node.child(n), n == 0 ? Turn::first : Turn::later, last ? Final::yes : Final::no, sink);
  }
}

void emit_down(Spec const& spec, Node const& node, std::uint32_t depth, std::uint32_t n, Sink& sink) {
  if (node.depth == depth && node.is_child(n)) take_down(spec, node.own, rank_at(spec, node.parent), sink);
  if (node.depth + 1 == depth && n < node.children()) give_down(spec, node.own, node.child(n), sink);
}

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  if (spec.ranks == 1) return emit_alone(sink);
  auto const node = node_at(spec, place_of(spec, rank));
  auto const levels = depth_of_tree(spec);
  auto const level = round / node.arity % levels, n = round % node.arity;
  if (round == 0) keep_own(spec, node.own, sink);
  if (goes_up(spec.op) && round < node.arity * levels)
    emit_up(spec, node, levels - level, n, sink);
  else
    emit_down(spec, node, level + 1, n, sink);
}

}  // namespace

plan::Algorithm const tree{
    .name = "tree",
    .summary = "up or down a k-ary tree, or both: about k log_k p steps each way, (k+1)n bytes through an inner node",
    .check = only_without_shape<Op::all_reduce, Op::reduce, Op::broadcast, Op::gather, Op::scatter, Op::barrier>,
    .chunks = chunk_per_block,
    .scratch_chunks = rooted_scratch,
    .rounds = rounds,
    .emit = emit,
    .rooted = true,
    .uses_arity = true,
};

}  // namespace chorus::algorithms
