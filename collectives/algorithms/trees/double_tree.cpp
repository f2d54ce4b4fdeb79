// double_tree: two binary trees at once, each for half of the vector. An inner node of one is a leaf of the other, so
// the links of all ranks are used in both directions.
//
// Steps: all_reduce 4 floor(log2 p); reduce and broadcast 2 floor(log2 (p-1)) + 2. Bytes: a rank sends at most 2n in
// all_reduce, n in reduce and in broadcast, for any p. The steps of a tree and, as segments flow, nearly the bandwidth
// of a ring: best for middle sizes on many ranks.
//
// Trees are over nodes 1 to m in order: odd numbers are leaves, node v with lowest bit b has the children v - b/2 and,
// where they exist, v + b/2, v + b/4, ...: the first that is at most m. The second tree is the first mirrored if m is
// even, moved by one if m is odd: either turns inner nodes into leaves. In all_reduce all p ranks are nodes. Otherwise
// the root is a node 0 above both trees, and the others are 1 to p - 1.
//
// Source: Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009; NCCL
// 2.4.
#include <bit>

#include "collectives/algorithms/common/common.hpp"
#include "collectives/algorithms/trees/algorithms.hpp"
#include "collectives/algorithms/trees/tree_rounds.hpp"

namespace chorus::algorithms {
namespace {

using plan::Buffer, plan::ChunkRange, plan::Final, plan::Rank, plan::Sink, plan::Spec;

constexpr std::uint32_t arity = 2;

// Node 0 is the root; unused if the operation has none.
class Node {
 public:
  Node(Spec const& spec, Rank rank, bool second)
      : has_root_(is_rooted(spec.op)),
        ranks_(spec.ranks),
        nodes_(has_root_ ? ranks_ - 1 : ranks_),
        offset_(has_root_ ? spec.root : ranks_ - 1),
        second_(second),
        index_(in_tree(has_root_ ? (rank + ranks_ - offset_) % ranks_ : rank + 1)) {
    for (auto above = index_; above != 0; above = parent_of(above)) ++depth_;
    if (!has_root_) --depth_;
  }

  [[nodiscard]] std::uint32_t levels() const {
    return static_cast<std::uint32_t>(std::bit_width(nodes_)) - (has_root_ ? 0 : 1);
  }
  [[nodiscard]] std::uint32_t depth() const { return depth_; }
  [[nodiscard]] std::uint32_t position() const {
    auto const parent = parent_of(index_);
    return parent != 0 && index_ > parent ? 1 : 0;
  }
  [[nodiscard]] Rank parent() const { return rank_of(parent_of(index_)); }
  [[nodiscard]] bool has_child(std::uint32_t n) const { return child_of(n) != 0; }
  [[nodiscard]] Rank child(std::uint32_t n) const { return rank_of(child_of(n)); }

 private:
  static std::uint32_t lowest_bit(std::uint32_t node) { return node & (0 - node); }

  [[nodiscard]] std::uint32_t parent_of(std::uint32_t node) const {
    auto const bit = lowest_bit(node);
    auto const parent = (node ^ bit) | (bit << 1);
    return parent <= nodes_ ? parent : node ^ bit;
  }
  // Returns child n of the node, or 0 if there is none.
  [[nodiscard]] std::uint32_t child_of(std::uint32_t n) const {
    if (index_ == 0) return n == 0 ? std::bit_floor(nodes_) : 0;
    auto bit = lowest_bit(index_) / 2;
    if (n == 0 && bit > 0) return index_ - bit;
    if (n != 1) return 0;
    while (index_ + bit > nodes_) bit /= 2;
    return bit > 0 ? index_ + bit : 0;
  }

  // Converts the ranks' number of a node to the tree's number. The root is 0 in both.
  [[nodiscard]] std::uint32_t in_tree(std::uint32_t node) const {
    if (!second_ || node == 0) return node;
    return nodes_ % 2 == 0 ? nodes_ + 1 - node : node % nodes_ + 1;
  }
  // Converts the tree's number of a node to its rank.
  [[nodiscard]] Rank rank_of(std::uint32_t node) const {
    if (second_ && node != 0) node = nodes_ % 2 == 0 ? nodes_ + 1 - node : node == 1 ? nodes_ : node - 1;
    return (node + offset_) % ranks_;
  }

  bool has_root_;
  std::uint32_t ranks_, nodes_, offset_;
  bool second_;
  std::uint32_t index_, depth_ = 0;
};

std::uint32_t chunks(Spec const& spec) { return spec.ranks == 1 ? 1 : 2; }

bool sums_in_scratch(Spec const& spec, Rank rank) { return spec.op == Op::reduce && rank != spec.root; }

std::uint32_t scratch_chunks(Spec const& spec, Rank rank) { return sums_in_scratch(spec, rank) ? 2 : 0; }

std::uint32_t rounds(Spec const& spec, Rank rank) {
  if (spec.ranks == 1) return 1;
  auto const one_way = arity * Node(spec, rank, false).levels();
  return spec.op == Op::all_reduce ? 2 * one_way : one_way;
}

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  if (spec.ranks == 1) return emit_alone(sink);
  if (spec.op == Op::broadcast && rank == spec.root && round == 0) sink.copy(plan::input(0, 2), plan::output(0, 2));
  for (std::uint32_t tree = 0; tree < 2; ++tree) {
    auto const node = Node(spec, rank, tree == 1);
    auto const half = ChunkRange{tree, 1};
    auto const levels = node.levels(), up = spec.op == Op::broadcast ? 0 : arity * levels;
    if (round < up)
      emit_up(node, round_up(round, levels, arity), half,
              sums_in_scratch(spec, rank) ? Buffer::scratch : Buffer::output, Final::yes, sink);
    else
      emit_down(node, round_down(round - up, arity), half, is_rooted(spec.op) ? Buffer::input : Buffer::output, sink);
  }
}

}  // namespace

plan::Algorithm const double_tree{
    .name = "double_tree",
    .summary = "two binary trees, half of the vector each: 4 log2 p steps, at most 2n bytes per rank",
    .check = only_without_shape<Op::all_reduce, Op::reduce, Op::broadcast>,
    .chunks = chunks,
    .scratch_chunks = scratch_chunks,
    .rounds = rounds,
    .emit = emit,
};

}  // namespace chorus::algorithms
