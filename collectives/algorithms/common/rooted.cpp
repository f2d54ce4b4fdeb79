#include "collectives/algorithms/common/rooted.hpp"

#include "collectives/algorithms/common/common.hpp"

namespace chorus::algorithms {

using plan::Buffer, plan::Final, plan::input, plan::output, plan::Rank, plan::scratch, plan::Sink, plan::Slice,
    plan::Spec;

namespace {

bool gathers(Op op) { return op == Op::gather || op == Op::barrier; }

// Returns the buffer of partial sums, or of blocks on their way up: the output if the final data of this rank is there.
Buffer buffer_up(Spec const& spec, Subtree const& own) {
  return own.is_root() || goes_down(spec.op) ? Buffer::output : Buffer::scratch;
}

template <class Use>
void for_blocks(Spec const& spec, Subtree const& subtree, Buffer buffer, Use use) {
  for_each_range(rank_at(spec, subtree.place), subtree.size, spec.ranks, [&](std::uint32_t first, std::uint32_t count) {
    use(Slice{buffer, first, count});
  });
}

}  // namespace

std::uint32_t rooted_scratch(Spec const& spec, Rank rank) {
  bool const transit = is_rooted(spec.op) && spec.op != Op::broadcast;
  return transit && rank != spec.root ? chunk_per_block(spec) : 0;
}

void keep_own(Spec const& spec, Subtree const& own, Sink& sink) {
  auto const rank = rank_at(spec, own.place);
  if (gathers(spec.op) && !own.is_leaf()) sink.copy(input(rank), {buffer_up(spec, own), rank});
  if (spec.op == Op::scatter && own.is_root()) sink.copy(input(rank), output(rank));
  if (spec.op == Op::broadcast && own.is_root()) sink.copy(input(0), output(0));
}

void give_up(Spec const& spec, Subtree const& own, Rank parent, Sink& sink) {
  auto const buffer = own.is_leaf() ? Buffer::input : buffer_up(spec, own);
  if (!gathers(spec.op)) return sink.send(parent, {buffer, 0});
  for_blocks(spec, own, buffer, [&](Slice blocks) { sink.send(parent, blocks); });
}

void take_up(Spec const& spec, Subtree const& own, Subtree const& child, Turn turn, Final final, Sink& sink) {
  auto const from = rank_at(spec, child.place);
  auto const buffer = buffer_up(spec, own);
  if (!gathers(spec.op)) {
    auto const sum = Slice{buffer, 0};
    return sink.recv_reduce(from, turn == Turn::first ? input(0) : sum, sum, final);
  }
  for_blocks(spec, child, buffer, [&](Slice blocks) { sink.recv(from, blocks); });
}

void give_down(Spec const& spec, Subtree const& own, Subtree const& child, Sink& sink) {
  auto const to = rank_at(spec, child.place);
  if (spec.op == Op::scatter) {
    auto const buffer = own.is_root() ? Buffer::input : Buffer::scratch;
    return for_blocks(spec, child, buffer, [&](Slice blocks) { sink.send(to, blocks); });
  }
  if (spec.op == Op::broadcast && own.is_root()) return sink.send(to, input(0));
  sink.send(to, output(0, chunk_per_block(spec)));
}

void take_down(Spec const& spec, Subtree const& own, Rank parent, Sink& sink) {
  if (spec.op != Op::scatter) return sink.recv(parent, output(0, chunk_per_block(spec)));
  auto const rank = rank_at(spec, own.place);
  if (own.is_leaf()) return sink.recv(parent, output(rank));
  for_blocks(spec, own, Buffer::scratch, [&](Slice blocks) { sink.recv(parent, blocks); });
  sink.copy(scratch(rank), output(rank));
}

}  // namespace chorus::algorithms
