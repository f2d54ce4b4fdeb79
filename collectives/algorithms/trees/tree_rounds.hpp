// Reduction up a tree and broadcast down it, one child after the other: the common part of double_tree and
// hierarchical.
#pragma once

#include <concepts>
#include <cstdint>

#include "collectives/algorithms/common/common.hpp"
#include "collectives/plan/algorithm.hpp"
#include "collectives/plan/holding.hpp"

namespace chorus::algorithms {

// One rank's node in a tree. The root's depth is 0. position() is the node's number among its parent's children, which
// are numbered without gaps. parent() and position() are not called for the root, and child(n) only if has_child(n).
template <class Node>
concept TreeNode = requires(Node const& node, std::uint32_t n) {
  { node.depth() } -> std::same_as<std::uint32_t>;
  { node.position() } -> std::same_as<std::uint32_t>;
  { node.parent() } -> std::same_as<plan::Rank>;
  { node.has_child(n) } -> std::same_as<bool>;
  { node.child(n) } -> std::same_as<plan::Rank>;
};

// One round: the nodes of this depth that are n-th children exchange with their parents. Upwards from the deepest
// level, downwards from level 1; for each n from 0.
struct TreeRound {
  std::uint32_t depth;
  std::uint32_t n;
};
[[nodiscard]] constexpr TreeRound round_up(std::uint32_t round, std::uint32_t levels, std::uint32_t arity) {
  return {levels - round / arity, round % arity};
}
[[nodiscard]] constexpr TreeRound round_down(std::uint32_t round, std::uint32_t arity) {
  return {1 + round / arity, round % arity};
}

// Emits a round up. A node adds the contributions of its children, in ascending order, to its input, with the sum in
// `sums`. `final`: yes if the root's sum is the result.
template <TreeNode Node>
void emit_up(Node const& node, TreeRound round, plan::ChunkRange vector, plan::Buffer sums, plan::Final final,
             plan::Sink& sink) {
  auto const own = slice(plan::Buffer::input, vector), sum = slice(sums, vector);
  if (node.depth() == round.depth && node.position() == round.n)
    sink.send(node.parent(), node.has_child(0) ? sum : own);
  if (node.depth() + 1 == round.depth && node.has_child(round.n)) {
    bool const completes = node.depth() == 0 && !node.has_child(round.n + 1);
    sink.recv_reduce(node.child(round.n), round.n == 0 ? own : sum, sum, completes ? final : plan::Final::no);
  }
}

// Emits a round down. The root has the result in `source`; every other rank gets it in the output.
template <TreeNode Node>
void emit_down(Node const& node, TreeRound round, plan::ChunkRange vector, plan::Buffer source, plan::Sink& sink) {
  auto const result = slice(plan::Buffer::output, vector);
  if (node.depth() == round.depth && node.position() == round.n) sink.recv(node.parent(), result);
  if (node.depth() + 1 == round.depth && node.has_child(round.n))
    sink.send(node.child(round.n), node.depth() == 0 ? slice(source, vector) : result);
}

}  // namespace chorus::algorithms
