// tree: reduce up a k-ary tree, broadcast down the same tree.
//
// Steps: 2 k ceil(log_k p), about: a node takes its children one after the other. Bytes: a node with k children sends
// and receives (k + 1) n. Few steps, so best for short vectors on many ranks; segments flow through all levels at once,
// so a long vector costs its (k + 1) n rather than its depth.
//
// The tree has the shape of a heap: node v has the children k v + 1 ... k v + k and the parent (v - 1) / k. Node 0 is
// the root, and rank r is node (r - root) mod p, so that any rank can be the root. Arity 1 is a chain, arity p - 1 a
// star. A node adds to its own contribution those of its children in ascending order: the same bits every time.
//
// Source: the k-ary trees of MPICH and rabit.
#include <algorithm>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/common.hpp"

namespace chorus::algorithms {
namespace {

using plan::Final, plan::input, plan::output, plan::Rank, plan::Sink, plan::Spec;

std::uint32_t chunks(Spec const&) { return 1; }

std::uint32_t arity_of(Spec const& spec) { return std::min(spec.arity, spec.ranks - 1); }

std::uint32_t depth_of(std::uint32_t node, std::uint32_t arity) {
  if (arity == 1) return node;
  auto depth = std::uint32_t{0};
  for (; node > 0; node = (node - 1) / arity) ++depth;
  return depth;
}

std::uint32_t depth_of_tree(Spec const& spec) { return depth_of(spec.ranks - 1, arity_of(spec)); }

std::uint32_t rounds(Spec const& spec, Rank) { return spec.ranks == 1 ? 1 : 2 * arity_of(spec) * depth_of_tree(spec); }

// One rank's place.
struct Node {
  Node(Spec const& spec, Rank rank)
      : root(spec.root),
        ranks(spec.ranks),
        arity(arity_of(spec)),
        index((rank + ranks - root) % ranks),
        depth(depth_of(index, arity)) {}

  [[nodiscard]] bool has_child(std::uint32_t n) const { return child_index(n) < ranks; }
  [[nodiscard]] bool is_child(std::uint32_t n) const { return index > 0 && (index - 1) % arity == n; }
  [[nodiscard]] Rank child(std::uint32_t n) const { return rank_of(static_cast<std::uint32_t>(child_index(n))); }
  [[nodiscard]] Rank parent() const { return rank_of((index - 1) / arity); }

  std::uint32_t root, ranks, arity, index, depth;

 private:
  [[nodiscard]] std::uint64_t child_index(std::uint32_t n) const { return std::uint64_t{arity} * index + 1 + n; }
  [[nodiscard]] Rank rank_of(std::uint32_t node) const { return (node + root) % ranks; }
};

// The nodes of one depth send to their parents: first all first children, then all second ones, ...
void emit_up(Node const& node, std::uint32_t depth, std::uint32_t n, Sink& sink) {
  if (node.depth == depth && node.is_child(n)) sink.send(node.parent(), node.has_child(0) ? output(0) : input(0));
  if (node.depth + 1 == depth && node.has_child(n)) {
    bool const last = node.index == 0 && n + 1 == node.arity;
    sink.recv_reduce(node.child(n), n == 0 ? input(0) : output(0), output(0), last ? Final::yes : Final::no);
  }
}

void emit_down(Node const& node, std::uint32_t depth, std::uint32_t n, Sink& sink) {
  if (node.depth == depth && node.is_child(n)) sink.recv(node.parent(), output(0));
  if (node.depth + 1 == depth && node.has_child(n)) sink.send(node.child(n), output(0));
}

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  if (spec.ranks == 1) return emit_alone(sink);
  auto const node = Node(spec, rank);
  auto const levels = depth_of_tree(spec);
  auto const level = round / node.arity, n = round % node.arity;
  if (level < levels)
    emit_up(node, levels - level, n, sink);
  else
    emit_down(node, level - levels + 1, n, sink);
}

}  // namespace

plan::Algorithm const tree{
    .name = "tree",
    .summary = "up and down a k-ary tree: about 2k log_k p steps, (k+1)n bytes through an inner node",
    .check = only_all_reduce,
    .chunks = chunks,
    .scratch_chunks = no_scratch,
    .rounds = rounds,
    .emit = emit,
    .rooted = true,
    .uses_arity = true,
};

}  // namespace chorus::algorithms
