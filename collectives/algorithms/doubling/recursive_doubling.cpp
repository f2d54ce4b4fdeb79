// recursive_doubling: every rank exchanges all its data with partners at distance 1, 2, 4, ...: a butterfly.
//
// Steps: log2 p. Bytes: all_reduce n log2 p per rank; all_gather (p-1)/p n per rank. The fewest steps in which all
// ranks can know all data: best for short vectors. A barrier gathers signs of arrival.
//
// If p is no power of two, pairs of ranks are folded into one (common/powers.hpp): one of the two gives its input
// before and gets the result after, which costs two steps and about n bytes more. Both partners of an exchange compute
// the same expression, the lower rank's operand first, so that all ranks end with the same bits.
//
// Sums alternate between output and scratch. If a receive overwrote data that is being sent, two partners would wait
// for each other.
//
// Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", IJHPCA 2005.
#include "collectives/algorithms/common/common.hpp"
#include "collectives/algorithms/common/powers.hpp"
#include "collectives/algorithms/doubling/algorithms.hpp"

namespace chorus::algorithms {
namespace {

using plan::Buffer, plan::Final, plan::input, plan::output, plan::Rank, plan::scratch, plan::Sink, plan::Slice,
    plan::Spec;

std::uint32_t scratch_chunks(Spec const& spec, Rank) { return spec.op == Op::all_reduce ? 1 : 0; }

std::uint32_t rounds(Spec const& spec, Rank) {
  if (spec.ranks == 1) return 1;
  auto const fold = Fold(spec.ranks);
  return fold.levels + (fold.pairs > 0 ? 2 : 0);
}

// --- all_reduce
// Returns the place of the sum after `exchanges` exchanges: after the last one it is the output.
Slice sum_after(Fold const& fold, Rank rank, std::uint32_t exchanges) {
  if (exchanges == 0 && !fold.is_paired(rank)) return input(0);
  return (fold.levels - exchanges) % 2 == 0 ? output(0) : scratch(0);
}

void fold_sums(Fold const& fold, Rank rank, Sink& sink) {
  if (fold.sits_out(rank)) return sink.send(Fold::partner(rank), input(0));
  sink.recv_reduce(Fold::partner(rank), input(0), sum_after(fold, rank, 0));
}

void exchange_sums(Spec const& spec, Fold const& fold, Rank rank, std::uint32_t level, Sink& sink) {
  auto const place = fold.place(rank), other = place ^ (1u << level);
  auto const peer = fold.rank_at(other);
  auto const before = sum_after(fold, rank, level), after = sum_after(fold, rank, level + 1);
  auto const final = level + 1 == fold.levels ? Final::yes : Final::no;
  bool const is_lower = place < other;
  sink.send(peer, before);
  if (spec.in_place && before.buffer == Buffer::input && after.buffer == Buffer::output) {  // the two buffers are one
    sink.recv(peer, scratch(0));
    if (is_lower) return sink.reduce(scratch(0), after, final);
    sink.reduce(before, scratch(0), final);
    return sink.copy(scratch(0), after);
  }
  if (is_lower) return sink.recv_reduce(peer, before, after, final);
  sink.recv(peer, after);
  sink.reduce(before, after, final);
}

// --- all_gather
void fold_blocks(Fold const& fold, Rank rank, Sink& sink) {
  if (fold.sits_out(rank)) return sink.send(Fold::partner(rank), input(rank));
  sink.recv(Fold::partner(rank), output(Fold::partner(rank)));
}

// Returns the blocks that `place` has before this level: those of all places that have exchanged data with it.
Slice gathered(Fold const& fold, std::uint32_t place, std::uint32_t level) {
  auto const begin = place >> level << level;
  auto const first = fold.first(begin);
  return output(first, fold.first(begin + (1u << level)) - first);
}

void exchange_blocks(Fold const& fold, Rank rank, std::uint32_t level, Sink& sink) {
  auto const place = fold.place(rank), other = place ^ (1u << level);
  auto const peer = fold.rank_at(other);
  bool const only_own = level == 0 && !fold.is_paired(rank);
  sink.send(peer, only_own ? input(rank) : gathered(fold, place, level));
  sink.recv(peer, gathered(fold, other, level));
}

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  if (spec.ranks == 1) return emit_alone(sink);
  auto const fold = Fold(spec.ranks);
  auto const before = fold.pairs > 0 ? 1u : 0u;
  bool const sums = spec.op == Op::all_reduce;
  if (!sums && round == 0 && !fold.sits_out(rank)) sink.copy(input(rank), output(rank));

  if (round < before) {
    if (!fold.is_paired(rank)) return;
    sums ? fold_sums(fold, rank, sink) : fold_blocks(fold, rank, sink);
  } else if (auto const level = round - before; level == fold.levels) {
    if (!fold.is_paired(rank)) return;
    auto const all = output(0, chunk_per_block(spec));
    fold.sits_out(rank) ? sink.recv(Fold::partner(rank), all) : sink.send(Fold::partner(rank), all);
  } else if (!fold.sits_out(rank)) {
    sums ? exchange_sums(spec, fold, rank, level, sink) : exchange_blocks(fold, rank, level, sink);
  }
}

}  // namespace

plan::Algorithm const recursive_doubling{
    .name = "recursive_doubling",
    .summary =
        "exchange of all one has at distance 1, 2, 4, ...: log2 p steps (+2), n log2 p bytes per rank to reduce, "
        "(p-1)/p n to gather",
    .check = only_without_shape<Op::all_reduce, Op::all_gather, Op::barrier>,
    .chunks = chunk_per_block,
    .scratch_chunks = scratch_chunks,
    .rounds = rounds,
    .emit = emit,
    .summation = pairs_of_powers,
};

}  // namespace chorus::algorithms
