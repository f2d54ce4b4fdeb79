// multi_tree: several trees at once, one slice of the vector each, reduced up and broadcast down.
//
// Steps: 2 times the depth of the deepest tree, all children of a node in one. Bytes: in a tree every rank but the root
// sends its slice up and gets it back, so with well-spread roots each sends about 2n in all. Best where links differ
// and trees are made for them: see collectives/topology.
//
// Shape: the trees' parents, one tree after the other: tree t's parent of rank r is shape[t p + r], and a root is its
// own parent. At most 64 trees, 64 levels deep. Empty: min(p, 8) binary trees with their roots spread over the ranks.
//
// Source: MXNet's kvstore "device" with MXNET_KVSTORE_USETREE (Carl Yang), 2018.
#include <algorithm>
#include <span>

#include "collectives/algorithms/common/common.hpp"
#include "collectives/algorithms/trees/algorithms.hpp"

namespace chorus::algorithms {
namespace {

using plan::Final, plan::input, plan::output, plan::Rank, plan::Shape, plan::Sink, plan::Spec;

// More trees gain nothing. The work to make a plan, and to prove it, grows with their square.
constexpr std::uint32_t max_trees = 64;
constexpr std::uint32_t max_levels = 64;
constexpr std::uint32_t trees_by_default = 8;

// A binary heap, rotated so that `root` is its first node.
class Heap {
 public:
  Heap(std::uint32_t ranks, Rank root) : ranks_(ranks), root_(root) {}

  [[nodiscard]] std::uint32_t depth(Rank rank) const {
    auto depth = std::uint32_t{0};
    for (auto node = node_of(rank); node > 0; node = (node - 1) / 2) ++depth;
    return depth;
  }
  [[nodiscard]] Rank parent(Rank rank) const { return rank_of((node_of(rank) - 1) / 2); }
  // The first child after `previous`, or `rank` itself if there is none. Pass `rank` as `previous` for the first child.
  [[nodiscard]] Rank child_after(Rank rank, Rank previous) const {
    auto const node = node_of(rank);
    auto const child = previous == rank ? 2 * node + 1 : node_of(previous) + 1;
    return child <= 2 * node + 2 && child < ranks_ ? rank_of(child) : rank;
  }

 private:
  [[nodiscard]] std::uint32_t node_of(Rank rank) const { return (rank + ranks_ - root_) % ranks_; }
  [[nodiscard]] Rank rank_of(std::uint32_t node) const { return (node + root_) % ranks_; }

  std::uint32_t ranks_;
  Rank root_;
};

// A tree given by a checked shape. Unlike Heap, it reads every rank's parent to find children.
class Parents {
 public:
  explicit Parents(std::span<Rank const> parents) : parents_(parents) {}

  [[nodiscard]] std::uint32_t depth(Rank rank) const {
    auto depth = std::uint32_t{0};
    for (; parents_[rank] != rank; rank = parents_[rank]) ++depth;
    return depth;
  }
  [[nodiscard]] Rank parent(Rank rank) const { return parents_[rank]; }
  [[nodiscard]] Rank child_after(Rank rank, Rank previous) const {
    for (auto child = previous == rank ? Rank{0} : previous + 1; child < parents_.size(); ++child)
      if (parents_[child] == rank && child != rank) return child;
    return rank;
  }

 private:
  std::span<Rank const> parents_;
};

std::uint32_t tree_count(Spec const& spec) {
  if (spec.shape.empty()) return std::min(spec.ranks, trees_by_default);
  return static_cast<std::uint32_t>(spec.shape.size()) / spec.ranks;
}

Heap heap(Spec const& spec, std::uint32_t tree) { return {spec.ranks, tree * spec.ranks / tree_count(spec)}; }

Parents parents(Spec const& spec, std::uint32_t tree) {
  return Parents(std::span(spec.shape).subspan(std::size_t{tree} * spec.ranks, spec.ranks));
}

std::uint32_t levels(Spec const& spec) {
  if (spec.shape.empty()) return heap(spec, 0).depth(spec.ranks - 1);
  auto levels = std::uint32_t{0};
  for (std::uint32_t tree = 0; tree < tree_count(spec); ++tree)
    for (Rank rank = 0; rank < spec.ranks; ++rank) levels = std::max(levels, parents(spec, tree).depth(rank));
  return levels;
}

// Returns the fault of a tree, or an empty text.
std::string fault(std::span<Rank const> parents) {
  auto roots = std::uint32_t{0};
  for (Rank rank = 0; rank < parents.size(); ++rank) {
    if (parents[rank] >= parents.size())
      return "the parent of rank " + std::to_string(rank) + " is " + std::to_string(parents[rank]);
    if (parents[rank] == rank) ++roots;
  }
  if (roots != 1) return std::to_string(roots) + " ranks are roots, their own parents";
  for (Rank rank = 0; rank < parents.size(); ++rank) {
    auto above = rank;
    for (std::uint32_t level = 0; level < max_levels; ++level) above = parents[above];
    if (parents[above] != above)
      return "rank " + std::to_string(rank) + " does not come to the root within " + std::to_string(max_levels) +
             " levels";
  }
  return {};
}

Status check(Spec const& spec) {
  auto const status = only<Op::all_reduce>(spec);
  if (status.has_error() || spec.shape.empty()) return status;
  if (spec.shape.size() % spec.ranks != 0)
    return wrong_shape(spec, "a multiple of " + std::to_string(spec.ranks) +
                                 " numbers: for every tree the parents of "
                                 "all ranks, a root its own");
  if (tree_count(spec) > max_trees) return wrong_shape(spec, "at most " + std::to_string(max_trees) + " trees");
  for (std::uint32_t tree = 0; tree < tree_count(spec); ++tree)
    if (auto const wrong = fault(std::span(spec.shape).subspan(std::size_t{tree} * spec.ranks, spec.ranks));
        !wrong.empty())
      return wrong_shape(spec, "the parents of all ranks in every tree, a root its own, but in tree " +
                                   std::to_string(tree) + " " + wrong);
  return ok();
}

std::uint32_t chunks(Spec const& spec) { return spec.ranks == 1 ? 1 : tree_count(spec); }

std::uint32_t rounds(Spec const& spec, Rank) { return spec.ranks == 1 ? 1 : 2 * levels(spec); }

// Emits the round in which the nodes of this depth send to their parents.
template <class Tree>
void emit_up(Tree const& tree, Rank rank, std::uint32_t depth, std::uint32_t chunk, Sink& sink) {
  auto const own_depth = tree.depth(rank);
  if (own_depth == depth)
    sink.send(tree.parent(rank), tree.child_after(rank, rank) == rank ? input(chunk) : output(chunk));
  if (own_depth + 1 != depth) return;
  auto sum = input(chunk);
  for (auto child = tree.child_after(rank, rank); child != rank;) {
    auto const next = tree.child_after(rank, child);
    sink.recv_reduce(child, sum, output(chunk), own_depth == 0 && next == rank ? Final::yes : Final::no);
    sum = output(chunk);
    child = next;
  }
}

template <class Tree>
void emit_down(Tree const& tree, Rank rank, std::uint32_t depth, std::uint32_t chunk, Sink& sink) {
  auto const own_depth = tree.depth(rank);
  if (own_depth == depth) sink.recv(tree.parent(rank), output(chunk));
  if (own_depth + 1 != depth) return;
  for (auto child = tree.child_after(rank, rank); child != rank; child = tree.child_after(rank, child))
    sink.send(child, output(chunk));
}

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  if (spec.ranks == 1) return emit_alone(sink);
  auto const depth = levels(spec);
  auto const emit_tree = [&](auto const& tree, std::uint32_t chunk) {
    if (round < depth)
      emit_up(tree, rank, depth - round, chunk, sink);
    else
      emit_down(tree, rank, round - depth + 1, chunk, sink);
  };
  for (std::uint32_t tree = 0; tree < tree_count(spec); ++tree) {
    if (spec.shape.empty())
      emit_tree(heap(spec, tree), tree);
    else
      emit_tree(parents(spec, tree), tree);
  }
}

// Returns two chains in opposite directions, if they are not too deep, and a star with a binomial tree.
std::vector<Shape> shapes(std::uint32_t ranks) {
  Shape chains(2 * ranks), others(2 * ranks, ranks / 2);
  for (Rank rank = 0; rank < ranks; ++rank) {
    chains[rank] = rank == 0 ? 0 : rank - 1;
    chains[ranks + rank] = std::min(rank + 1, ranks - 1);
    others[ranks + rank] = rank == 0 ? 0 : rank & (rank - 1);
  }
  if (ranks > max_levels) return {others};
  return {chains, others};
}

}  // namespace

plan::Algorithm const multi_tree{
    .name = "multi_tree",
    .summary = "several trees, a slice of the vector each: 2 depth steps, about 2n bytes per rank",
    .check = check,
    .chunks = chunks,
    .scratch_chunks = no_scratch,
    .rounds = rounds,
    .emit = emit,
    .shapes = shapes,
};

}  // namespace chorus::algorithms
