// ring: every rank owns one chunk of p. Reduced parts travel once around the ring, finished chunks once more.
//
// Steps: p-1 for reduce_scatter and for all_gather, 2 (p-1) for all_reduce, which is both, and for reduce, where the
// finished chunks go straight to the root. All ranks are busy in each step. Bytes: every rank sends (p-1)/p n in each
// half, the minimum (in a reduce 1/p n in the second half, of which the root receives all). Except for the root's
// chunks every rank uses only the links to its two neighbours. Best for long vectors; for short ones the latencies
// dominate.
//
// Round t of the first half: rank r sends chunk s - t, of which it holds t + 1 contributions, and adds its own to chunk
// s - t - 1. After p - 1 rounds it has the complete chunk s + 1. In all_reduce s = r. If blocks have owners s = r - 1.
// The second half passes the finished chunks on.
//
// Source: Patarasu and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 2009;
// Thakur, Rabenseifner, Gropp, IJHPCA 2005.
#include "collectives/algorithms/common/common.hpp"
#include "collectives/algorithms/ring/algorithms.hpp"

namespace chorus::algorithms {
namespace {

using plan::Buffer, plan::Final, plan::input, plan::output, plan::Rank, plan::scratch, plan::Sink, plan::Spec;

std::uint32_t scratch_chunks(Spec const& spec, Rank) {
  return spec.op == Op::reduce || spec.op == Op::reduce_scatter ? spec.ranks : 0;
}

std::uint32_t rounds(Spec const& spec, Rank) {
  if (spec.ranks == 1) return 1;
  bool const two_halves = spec.op == Op::all_reduce || spec.op == Op::reduce;
  return (two_halves ? 2 : 1) * (spec.ranks - 1);
}

// No divisions, because they would dominate a simulation of many ranks.
struct Place {
  Place(Spec const& spec, Rank r)
      : p(spec.ranks), rank(r), next(r + 1 == p ? 0 : r + 1), previous(r == 0 ? p - 1 : r - 1) {}
  [[nodiscard]] std::uint32_t minus(std::uint32_t chunk, std::uint32_t steps) const {  // steps <= p
    return chunk >= steps ? chunk - steps : chunk + p - steps;
  }
  std::uint32_t p;
  Rank rank, next, previous;
};

// `partial`: buffer of sums that other ranks finish; `finished`: buffer of this rank's own result.
void emit_reduce_scatter(Place const& at, std::uint32_t start, Buffer partial, Buffer finished, std::uint32_t round,
                         Sink& sink) {
  auto const part = at.minus(start, round), mine = at.minus(start, round + 1);
  bool const last = round == at.p - 2;
  sink.send(at.next, {round == 0 ? Buffer::input : partial, part});
  sink.recv_reduce(at.previous, input(mine), {last ? finished : partial, mine}, last ? Final::yes : Final::no);
}

// In the first round the chunk `start` is sent from the buffer `first`.
void emit_all_gather(Place const& at, std::uint32_t start, Buffer first, std::uint32_t round, Sink& sink) {
  sink.send(at.next, {round == 0 ? first : Buffer::output, at.minus(start, round)});
  sink.recv(at.previous, output(at.minus(start, round + 1)));
}

void emit_to_root(Spec const& spec, Place const& at, std::uint32_t step, Sink& sink) {
  auto const owner = step < spec.root ? step : step + 1;
  if (at.rank == owner) sink.send(spec.root, scratch(owner));
  if (at.rank == spec.root) sink.recv(owner, output(owner));
}

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  if (spec.ranks == 1) return emit_alone(sink);
  auto const at = Place(spec, rank);
  auto const half = spec.ranks - 1;
  switch (spec.op) {
    case Op::all_reduce:
      if (round < half) return emit_reduce_scatter(at, rank, Buffer::output, Buffer::output, round, sink);
      return emit_all_gather(at, at.next, Buffer::output, round - half, sink);
    case Op::reduce:
      if (round >= half) return emit_to_root(spec, at, round - half, sink);
      return emit_reduce_scatter(at, at.previous, Buffer::scratch, rank == spec.root ? Buffer::output : Buffer::scratch,
                                 round, sink);
    case Op::reduce_scatter:
      return emit_reduce_scatter(at, at.previous, Buffer::scratch, Buffer::output, round, sink);
    default:
      if (round == 0) sink.copy(input(rank), output(rank));
      return emit_all_gather(at, rank, Buffer::input, round, sink);
  }
}

}  // namespace

plan::Algorithm const ring{
    .name = "ring",
    .summary = "reduce-scatter and all-gather around a ring: p-1 steps and (p-1)/p n bytes per rank for each",
    .check = only_without_shape<Op::all_reduce, Op::reduce, Op::all_gather, Op::reduce_scatter>,
    .chunks = chunk_per_rank,
    .scratch_chunks = scratch_chunks,
    .rounds = rounds,
    .emit = emit,
    .summation = one_by_one,
    .rotates = [](Spec const& spec) { return spec.op != Op::reduce; },
};

}  // namespace chorus::algorithms
