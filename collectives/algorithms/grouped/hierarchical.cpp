// hierarchical: reduce in every group to its first rank, ring all_reduce among these leaders, broadcast in the groups.
//
// Steps: about 2 k ceil(log_k s) + 2 (g-1) for g groups of at most s ranks and arity k. Bytes: an inner node of a
// group's tree sends and receives (k+1) n, a leader in addition 2 (g-1)/g n between the groups. Best if groups are
// hosts with fast links inside and slow links between, and vectors are too short for torus_2d, whose messages are s
// times shorter.
//
// Shape: the sizes of the groups, which are neighbouring ranks; their sum is p. Empty: about sqrt(p) groups of sizes as
// equal as possible. Trees in the groups are those of `tree`: arity s - 1 is a star.
//
// Source: the hierarchical all_reduce of Horovod, Open MPI HAN and Jia et al., "Highly Scalable Deep Learning Training
// System with Mixed-Precision", 2018.
#include <algorithm>
#include <numeric>

#include "collectives/algorithms/common/common.hpp"
#include "collectives/algorithms/grouped/algorithms.hpp"
#include "collectives/algorithms/grouped/levels.hpp"
#include "collectives/algorithms/ring/ring_stage.hpp"
#include "collectives/algorithms/trees/tree_rounds.hpp"

namespace chorus::algorithms {
namespace {

using plan::Buffer, plan::ChunkRange, plan::Final, plan::Rank, plan::Shape, plan::Sink, plan::Spec;

std::uint32_t group_count(Spec const& spec) {
  return spec.shape.empty() ? square_root(spec.ranks) : static_cast<std::uint32_t>(spec.shape.size());
}

// Returns the size of a group if `ranks` are divided among `groups`; each of the first groups has one rank more if
// there is a remainder.
std::uint32_t even_size(std::uint32_t ranks, std::uint32_t groups, std::uint32_t group) {
  return ranks / groups + (group < ranks % groups ? 1 : 0);
}
Rank even_begin(std::uint32_t ranks, std::uint32_t groups, std::uint32_t group) {
  return group * (ranks / groups) + std::min(group, ranks % groups);
}

Shape even_shape(std::uint32_t ranks) {
  auto const groups = square_root(ranks);
  Shape shape;
  for (std::uint32_t group = 0; group < groups; ++group) shape.push_back(even_size(ranks, groups, group));
  return shape;
}

// One rank's group and its neighbours in the ring of leaders.
struct Group {
  std::uint32_t index = 0, size = 0, largest_size = 0;
  Rank leader = 0, next_leader = 0, previous_leader = 0;
};

Group group_in_shape(Shape const& shape, Rank rank) {
  Group group;
  auto const last = static_cast<std::uint32_t>(shape.size()) - 1;
  Rank begin = 0;
  for (std::uint32_t i = 0; i <= last; ++i) {
    group.largest_size = std::max(group.largest_size, shape[i]);
    if (rank >= begin && rank - begin < shape[i]) {
      group.index = i;
      group.size = shape[i];
      group.leader = begin;
      group.next_leader = i == last ? 0 : begin + shape[i];
      if (i > 0) group.previous_leader = begin - shape[i - 1];
    }
    if (i < last) begin += shape[i];
  }
  if (group.index == 0) group.previous_leader = begin;
  return group;
}

Group even_group(Spec const& spec, Rank rank) {
  auto const p = spec.ranks, groups = group_count(spec), larger = p / groups + 1, of_larger = p % groups * larger;
  auto const index = rank < of_larger ? rank / larger : p % groups + (rank - of_larger) / (p / groups);
  return {.index = index,
          .size = even_size(p, groups, index),
          .largest_size = even_size(p, groups, 0),
          .leader = even_begin(p, groups, index),
          .next_leader = even_begin(p, groups, (index + 1) % groups),
          .previous_leader = even_begin(p, groups, (index + groups - 1) % groups)};
}

Group group_of(Spec const& spec, Rank rank) {
  return spec.shape.empty() ? even_group(spec, rank) : group_in_shape(spec.shape, rank);
}

Status check(Spec const& spec) {
  auto const status = only<Op::all_reduce>(spec);
  if (status.has_error() || spec.shape.empty()) return status;
  auto const sum = std::accumulate(spec.shape.begin(), spec.shape.end(), std::uint64_t{0});
  bool const has_empty = std::find(spec.shape.begin(), spec.shape.end(), 0u) != spec.shape.end();
  if (sum == spec.ranks && !has_empty) return ok();
  return wrong_shape(spec, "sizes of groups, none of them 0, whose sum is " + std::to_string(spec.ranks) +
                               ", such as " + to_text(even_shape(spec.ranks)));
}

// A tree in heap order.
class Node {
 public:
  Node(Group const& group, std::uint32_t arity, Rank rank)
      : leader_(group.leader), size_(group.size), arity_(arity), index_(rank - group.leader) {}

  [[nodiscard]] static std::uint32_t depth_of(std::uint32_t index, std::uint32_t arity) {
    if (arity <= 1) return index;
    auto depth = std::uint32_t{0};
    for (; index > 0; index = (index - 1) / arity) ++depth;
    return depth;
  }

  [[nodiscard]] std::uint32_t depth() const { return depth_of(index_, arity_); }
  [[nodiscard]] std::uint32_t position() const { return (index_ - 1) % arity_; }
  [[nodiscard]] Rank parent() const { return leader_ + (index_ - 1) / arity_; }
  [[nodiscard]] bool has_child(std::uint32_t n) const { return n < arity_ && child_index(n) < size_; }
  [[nodiscard]] Rank child(std::uint32_t n) const { return leader_ + static_cast<std::uint32_t>(child_index(n)); }

 private:
  [[nodiscard]] std::uint64_t child_index(std::uint32_t n) const { return std::uint64_t{arity_} * index_ + 1 + n; }

  Rank leader_;
  std::uint32_t size_, arity_, index_;
};

std::uint32_t arity_of(Spec const& spec, Group const& group) { return std::min(spec.arity, group.largest_size - 1); }

std::uint32_t levels_of(Spec const& spec, Group const& group) {
  return Node::depth_of(group.largest_size - 1, arity_of(spec, group));
}

std::uint32_t chunks(Spec const& spec) { return group_count(spec); }

std::uint32_t rounds(Spec const& spec, Rank rank) {
  if (spec.ranks == 1) return 1;
  auto const group = group_of(spec, rank);
  return 2 * arity_of(spec, group) * levels_of(spec, group) + 2 * (group_count(spec) - 1);
}

void emit_between_leaders(Spec const& spec, Group const& group, std::uint32_t round, Sink& sink) {
  auto const groups = group_count(spec);
  auto const member = RingMember{group.index, groups, group.next_leader, group.previous_leader};
  if (round < groups - 1)
    emit_ring_reduce_scatter(member, round, {0, groups}, group.size == 1, Final::yes, sink);
  else
    emit_ring_all_gather(member, round - (groups - 1), {0, groups}, sink);
}

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  if (spec.ranks == 1) return emit_alone(sink);
  auto const group = group_of(spec, rank);
  auto const arity = arity_of(spec, group), levels = levels_of(spec, group);
  auto const groups = group_count(spec), between = 2 * (groups - 1);
  auto const node = Node(group, arity, rank);
  auto const vector = ChunkRange{0, groups};
  if (round < arity * levels)
    return emit_up(node, round_up(round, levels, arity), vector, Buffer::output, groups == 1 ? Final::yes : Final::no,
                   sink);
  round -= arity * levels;
  if (round >= between) return emit_down(node, round_down(round - between, arity), vector, Buffer::output, sink);
  if (rank == group.leader) emit_between_leaders(spec, group, round, sink);
}

// Returns one group, uneven groups, and groups of single ranks.
std::vector<Shape> shapes(std::uint32_t ranks) {
  std::vector<Shape> shapes{{ranks}};
  if (ranks > 2) shapes.push_back({1, ranks - 2, 1});
  if (ranks > 1) shapes.push_back(Shape(ranks, 1));
  return shapes;
}

}  // namespace

plan::Algorithm const hierarchical{
    .name = "hierarchical",
    .summary = "trees in g groups of s ranks, a ring between: about 2k log_k s + 2(g-1) steps, (k+1)n bytes in a group",
    .check = check,
    .chunks = chunks,
    .scratch_chunks = no_scratch,
    .rounds = rounds,
    .emit = emit,
    .uses_arity = true,
    .shapes = shapes,
};

}  // namespace chorus::algorithms
