// direct: every rank sends every block straight to its destination.
//
// Steps: p-1, one message out and one in at each; no message waits for another, so the time is one latency if sends are
// buffered. Bytes: (p-1)/p n per rank, the minimum. all_gather: every rank sends its block to all, the next ranks
// first. all_to_all: every rank sends block d to rank d. reduce_scatter: the same, and rank d adds the blocks. A
// barrier of this kind is "all-to-all". Best if all pairs are equally near and p is small, and for uneven blocks.
//
// reduce_scatter takes the contributions in worker order, with the same bits as every other algorithm that does. Ranks
// s and q exchange in round s + q: then every rank meets the others by ascending rank and none ever has two partners,
// in 2p-3 steps. Segments close the gaps, because they follow each other through the chain of a rank's receives.
//
// Source: the linear algorithms of Open MPI (MPI_Allgather, MPI_Alltoall).
#include "collectives/algorithms/common/common.hpp"
#include "collectives/algorithms/common/worker_order.hpp"
#include "collectives/algorithms/direct/algorithms.hpp"
#include "collectives/algorithms/direct/all_to_all_in_place.hpp"

namespace chorus::algorithms {
namespace {

using plan::input, plan::output, plan::Rank, plan::scratch, plan::Sink, plan::Spec;

std::uint32_t scratch_chunks(Spec const& spec, Rank) {
  return sets_aside(spec) || (spec.op == Op::reduce_scatter && spec.in_place) ? spec.ranks : 0;
}

std::uint32_t rounds(Spec const& spec, Rank) {
  if (spec.ranks == 1) return 1;
  if (spec.op == Op::reduce_scatter) return 2 * spec.ranks - 1;  // 2r, in which rank r meets itself, is up to 2p - 2
  return spec.ranks - 1 + (sets_aside(spec) ? 1 : 0);
}

void emit_reduce_scatter(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  if (round < rank || round - rank >= spec.ranks) return;
  auto const peer = round - rank;
  if (peer != rank) sink.send(peer, input(peer));
  take_in_worker_order(spec, rank, peer, spec.in_place ? scratch(rank) : output(rank), output(rank), sink);
}

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  auto const p = spec.ranks;
  if (p == 1) return emit_alone(sink);
  if (spec.op == Op::reduce_scatter) return emit_reduce_scatter(spec, rank, round, sink);
  if (sets_aside(spec) && round == 0) return set_aside(spec, rank, sink);
  auto const step = sets_aside(spec) ? round : round + 1;
  auto const to = (rank + step) % p, from = (rank + p - step) % p;
  sink.send(to, spec.op == Op::all_to_all ? outgoing(spec, to) : input(rank));
  sink.recv(from, output(from));
  if (step == 1) sink.copy(input(rank), output(rank));
}

}  // namespace

plan::Algorithm const direct{
    .name = "direct",
    .summary = "every block straight to where it belongs: p-1 steps, to reduce 2p-3, (p-1)/p n bytes per rank",
    .check = only_without_shape<Op::all_gather, Op::reduce_scatter, Op::all_to_all, Op::barrier>,
    .chunks = chunk_per_rank,
    .scratch_chunks = scratch_chunks,
    .rounds = rounds,
    .emit = emit,
    .in_worker_order = [](Spec const& spec) { return reduces(spec.op); },
    .rotates = [](Spec const& spec) { return !reduces(spec.op); },
};

}  // namespace chorus::algorithms
