// pairwise: in every round each rank exchanges blocks with one partner, or sends to one and receives from another.
//
// Steps: p-1. Bytes: (p-1)/p n per rank, the minimum. In round i the partner is r xor i if p is a power of two;
// otherwise rank r sends to r + i and receives from r - i. Best for all_to_all and reduce_scatter of long vectors:
// ranks serve one message at a time and never wait for a busy third rank.
//
// Rank r reduces its own contribution first, then those of its partners round by round: fast, because no rank waits for
// a common first rank, but in another order at every rank.
//
// Source: MPICH (MPI_Alltoall and MPI_Reduce_scatter for long vectors); Thakur, Rabenseifner, Gropp, IJHPCA 2005.
#include <bit>

#include "collectives/algorithms/common/common.hpp"
#include "collectives/algorithms/direct/algorithms.hpp"
#include "collectives/algorithms/direct/all_to_all_in_place.hpp"

namespace chorus::algorithms {
namespace {

using plan::Final, plan::input, plan::output, plan::Rank, plan::Sink, plan::Spec;

std::uint32_t scratch_chunks(Spec const& spec, Rank) { return sets_aside(spec) ? spec.ranks : 0; }

std::uint32_t rounds(Spec const& spec, Rank) {
  return spec.ranks == 1 ? 1 : spec.ranks - 1 + (sets_aside(spec) ? 1 : 0);
}

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  auto const p = spec.ranks;
  if (p == 1) return emit_alone(sink);
  if (sets_aside(spec) && round == 0) return set_aside(spec, rank, sink);
  auto const step = sets_aside(spec) ? round : round + 1;
  bool const exchange = std::has_single_bit(p);
  auto const to = exchange ? rank ^ step : (rank + step) % p;
  auto const from = exchange ? to : (rank + p - step) % p;

  sink.send(to, outgoing(spec, to));
  if (spec.op == Op::reduce_scatter)
    return sink.recv_reduce(from, step == 1 ? input(rank) : output(rank), output(rank),
                            step + 1 == p ? Final::yes : Final::no);
  sink.recv(from, output(from));
  if (step == 1) sink.copy(input(rank), output(rank));
}

}  // namespace

plan::Algorithm const pairwise{
    .name = "pairwise",
    .summary = "an exchange of blocks with every other rank in turn: p-1 steps, (p-1)/p n bytes per rank",
    .check = only_without_shape<Op::reduce_scatter, Op::all_to_all>,
    .chunks = chunk_per_rank,
    .scratch_chunks = scratch_chunks,
    .rounds = rounds,
    .emit = emit,
    .summation = one_by_one,
    .rotates = [](Spec const& spec) { return !std::has_single_bit(spec.ranks); },
};

}  // namespace chorus::algorithms
