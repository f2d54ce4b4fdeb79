// recursive_halving: partners at distance p/2, p/4, ..., 1 exchange halves of the chunks that they still reduce.
//
// reduce_scatter: log2 p steps, (p-1)/p n bytes per rank, both minimal for powers of two. Otherwise pairs of ranks are
// folded into one (common/powers.hpp): two more steps, and n bytes from each rank that sits out. reduce (Rabenseifner):
// the halves are gathered to the root along a binomial tree: 2 log2 p steps (+1), at most 3/2 n bytes per rank, instead
// of n log2 p of a binomial tree: best for long vectors on many ranks.
//
// A block is reduced along a binomial tree of its own, not in worker order.
//
// Source: Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004; Thakur, Rabenseifner, Gropp,
// IJHPCA 2005.
#include "collectives/algorithms/common/common.hpp"
#include "collectives/algorithms/common/powers.hpp"
#include "collectives/algorithms/doubling/algorithms.hpp"

namespace chorus::algorithms {
namespace {

using plan::Buffer, plan::Final, plan::input, plan::output, plan::Rank, plan::scratch, plan::Sink, plan::Slice,
    plan::Spec;

Fold fold_of(Spec const& spec) { return spec.op == Op::reduce ? Fold(spec.ranks, spec.root) : Fold(spec.ranks); }

// Returns one chunk per block or, in reduce, which has no blocks, one per active rank.
std::uint32_t chunks(Spec const& spec) { return spec.op == Op::reduce ? fold_of(spec).power : spec.ranks; }

// Returns the buffer of sums: the output at the root of a reduce, scratch at other ranks.
Buffer sums(Spec const& spec, Rank rank) {
  return spec.op == Op::reduce && rank == spec.root ? Buffer::output : Buffer::scratch;
}

std::uint32_t scratch_chunks(Spec const& spec, Rank rank) {
  return sums(spec, rank) == Buffer::scratch ? chunks(spec) : 0;
}

std::uint32_t rounds(Spec const& spec, Rank) {
  if (spec.ranks == 1) return 1;
  auto const fold = fold_of(spec);
  auto const folding = fold.pairs > 0 ? 1u : 0u;
  return folding + fold.levels + (spec.op == Op::reduce ? fold.levels : folding);
}

// Returns the chunks of the places [begin, begin + count).
Slice chunks_of(Spec const& spec, Fold const& fold, Buffer buffer, std::uint32_t begin, std::uint32_t count) {
  if (spec.op == Op::reduce) return {buffer, begin, count};
  return {buffer, fold.first(begin), fold.first(begin + count) - fold.first(begin)};
}

void emit_fold(Spec const& spec, Fold const& fold, Rank rank, Sink& sink) {
  if (!fold.is_paired(rank)) return;
  auto const all = chunks(spec);
  auto const partner = Fold::partner(rank);
  if (fold.sits_out(rank)) return sink.send(partner, input(0, all));
  sink.recv_reduce(partner, input(0, all), {sums(spec, rank), 0, all});
}

void emit_halving(Spec const& spec, Fold const& fold, Rank rank, std::uint32_t level, Sink& sink) {
  auto const distance = fold.power >> (level + 1);
  auto const place = fold.place(rank);
  auto const mine = place & ~(distance - 1), theirs = mine ^ distance;
  auto const peer = fold.rank_at(place ^ distance);
  bool const last = level + 1 == fold.levels;
  auto const before = level == 0 && !fold.is_paired(rank) ? Buffer::input : sums(spec, rank);
  bool const only_own = last && spec.op == Op::reduce_scatter && !fold.is_paired(rank);
  auto const after = only_own ? Buffer::output : sums(spec, rank);
  sink.send(peer, chunks_of(spec, fold, before, theirs, distance));
  sink.recv_reduce(peer, chunks_of(spec, fold, before, mine, distance), chunks_of(spec, fold, after, mine, distance),
                   last ? Final::yes : Final::no);
}

// The end of a reduce_scatter: a rank that stood for two has two blocks, and sends one to its partner.
void emit_unfold(Fold const& fold, Rank rank, Sink& sink) {
  if (!fold.is_paired(rank)) return;
  auto const partner = Fold::partner(rank);
  if (fold.sits_out(rank)) return sink.recv(partner, output(rank));
  sink.send(partner, scratch(partner));
  sink.copy(scratch(rank), output(rank));
}

// The second half of a reduce, the reverse of halving. A place xor the root's place is its distance from the root, and
// the chunks of aligned groups of places are contiguous.
void emit_gather(Spec const& spec, Fold const& fold, Rank rank, std::uint32_t level, Sink& sink) {
  auto const distance = 1u << level;
  auto const place = fold.place(rank), place_to_root = place ^ fold.place(spec.root);
  auto const mine = place & ~(distance - 1), theirs = mine ^ distance;
  auto const peer = fold.rank_at(place ^ distance);
  auto const low_bits = place_to_root & (2 * distance - 1);
  if (low_bits == distance) sink.send(peer, chunks_of(spec, fold, sums(spec, rank), mine, distance));
  if (low_bits == 0) sink.recv(peer, chunks_of(spec, fold, sums(spec, rank), theirs, distance));
}

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  if (spec.ranks == 1) return emit_alone(sink);
  auto const fold = fold_of(spec);
  if (fold.pairs > 0) {
    if (round == 0) return emit_fold(spec, fold, rank, sink);
    --round;
  }
  if (round >= fold.levels && spec.op == Op::reduce_scatter) return emit_unfold(fold, rank, sink);
  if (fold.sits_out(rank)) return;
  if (round < fold.levels) return emit_halving(spec, fold, rank, round, sink);
  emit_gather(spec, fold, rank, round - fold.levels, sink);
}

}  // namespace

plan::Algorithm const recursive_halving{
    .name = "recursive_halving",
    .summary =
        "halves at distance p/2, p/4, ..., 1: log2 p steps (+2) and (p-1)/p n bytes per rank to reduce and "
        "scatter, 2 log2 p steps (+1) and 3/2 n bytes to reduce",
    .check = only_without_shape<Op::reduce, Op::reduce_scatter>,
    .chunks = chunks,
    .scratch_chunks = scratch_chunks,
    .rounds = rounds,
    .emit = emit,
    .summation = pairs_of_powers,
};

}  // namespace chorus::algorithms
