// centralized: the root exchanges with every rank, one after the other, and does all the work.
//
// Steps: p-1 for each of the two directions. To the root go contributions (reduce) or blocks (gather); from it come a
// vector (broadcast) or blocks (scatter). The other operations are both: all_reduce is reduce and broadcast, all_gather
// and barrier are gather and broadcast, reduce_scatter is reduce and scatter; a barrier of this kind is "all-to-one".
// Bytes: the root sends or receives (p-1) n of whole vectors, (p-1)/p n of blocks; every other rank 1/(p-1) of that.
// Simple, and the fastest for two ranks and tiny vectors; the root is the bottleneck otherwise.
//
// Every root reduces in worker order, so the bits are those of all algorithms that reduce in worker order.
//
// Source: the linear algorithms of Open MPI and MPICH (MPI_Reduce followed by MPI_Bcast, and their like).
#include "collectives/algorithms/common/common.hpp"
#include "collectives/algorithms/common/rooted.hpp"
#include "collectives/algorithms/common/worker_order.hpp"
#include "collectives/algorithms/direct/algorithms.hpp"

namespace chorus::algorithms {
namespace {

using plan::Buffer, plan::input, plan::output, plan::Rank, plan::scratch, plan::Sink, plan::Slice, plan::Spec;

// The root's sum is in scratch if the output has room for one block only or, in place, holds the root's contribution.
bool sums_in_scratch(Spec const& spec) { return reduces(spec.op) && (spec.in_place || has_blocks(spec.op)); }

std::uint32_t scratch_chunks(Spec const& spec, Rank rank) {
  return sums_in_scratch(spec) && rank == spec.root ? chunk_per_block(spec) : 0;
}

std::uint32_t rounds(Spec const& spec, Rank) { return spec.ranks == 1 ? 1 : directions(spec.op) * (spec.ranks - 1); }

// Returns the rank at a position among the ranks except the root, ascending.
Rank other(Spec const& spec, std::uint32_t position) { return position < spec.root ? position : position + 1; }

void root_takes(Spec const& spec, Rank from, Sink& sink) {
  if (!reduces(spec.op)) return sink.recv(from, output(from));
  auto const count = chunk_per_block(spec);
  auto const sum = Slice{sums_in_scratch(spec) ? Buffer::scratch : Buffer::output, 0, count};
  auto const result = Slice{spec.op == Op::reduce_scatter ? Buffer::scratch : Buffer::output, 0, count};
  take_in_worker_order(spec, spec.root, from, sum, result, sink);
  if (from + 1 == spec.root) take_in_worker_order(spec, spec.root, spec.root, sum, result, sink);
}

void root_gives(Spec const& spec, Rank to, Sink& sink) {
  if (spec.op == Op::scatter) return sink.send(to, input(to));
  if (spec.op == Op::broadcast) return sink.send(to, input(0));
  if (spec.op == Op::reduce_scatter) return sink.send(to, scratch(to));
  sink.send(to, output(0, chunk_per_block(spec)));
}

// Emits the root's local copies, before it sends or while it receives.
void root_keeps(Spec const& spec, Sink& sink) {
  if (spec.op == Op::reduce_scatter) return sink.copy(scratch(spec.root), output(spec.root));
  auto const own = has_blocks(spec.op) ? spec.root : 0;
  sink.copy(input(own), output(own));
}

void give_root(Spec const& spec, Rank rank, Sink& sink) {
  sink.send(spec.root, reduces(spec.op) ? input(0, chunk_per_block(spec)) : input(rank));
}

void take_from_root(Spec const& spec, Rank rank, Sink& sink) {
  bool const block = spec.op == Op::scatter || spec.op == Op::reduce_scatter;
  sink.recv(spec.root, block ? output(rank) : output(0, chunk_per_block(spec)));
}

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  if (spec.ranks == 1) return emit_alone(sink);
  auto const others = spec.ranks - 1;
  bool const up = goes_up(spec.op) && round < others;
  auto const peer = other(spec, round % others);
  if (rank == spec.root) {
    up ? root_takes(spec, peer, sink) : root_gives(spec, peer, sink);
    bool const has_own = spec.op == Op::reduce_scatter ? round == others : !reduces(spec.op) && round == 0;
    if (has_own) root_keeps(spec, sink);
  } else if (rank == peer) {
    up ? give_root(spec, rank, sink) : take_from_root(spec, rank, sink);
  }
}

}  // namespace

plan::Algorithm const centralized{
    .name = "centralized",
    .summary = "all to the root or back, or both: p-1 steps each way, all bytes through the root",
    .check = only_without_shape<Op::all_reduce, Op::reduce, Op::broadcast, Op::all_gather, Op::reduce_scatter,
                                Op::gather, Op::scatter, Op::barrier>,
    .chunks = chunk_per_block,
    .scratch_chunks = scratch_chunks,
    .rounds = rounds,
    .emit = emit,
    .rooted = true,
    .in_worker_order = [](Spec const& spec) { return reduces(spec.op); },
};

}  // namespace chorus::algorithms
