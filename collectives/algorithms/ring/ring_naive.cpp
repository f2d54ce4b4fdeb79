// ring_naive: the whole vector travels along the ring to be reduced, and once more as the result.
//
// Steps: 2 (p-1), one rank busy in each. Bytes: every rank except the first and last sends 2n. For comparison only: the
// textbook's step before `ring`. Segments flow along it as in a chain, so long vectors take about 2n rather than 2
// (p-1) n.
//
// In round t rank t sends the sum of the contributions of ranks 0 to t; rank p - 1 has the result and passes it to rank
// 0.
//
// Source: the naive ring of the textbooks; two pipelined chains.
#include "collectives/algorithms/common/common.hpp"
#include "collectives/algorithms/ring/algorithms.hpp"

namespace chorus::algorithms {
namespace {

using plan::Final, plan::input, plan::output, plan::Rank, plan::Sink, plan::Spec;

std::uint32_t chunks(Spec const&) { return 1; }

std::uint32_t rounds(Spec const& spec, Rank) { return spec.ranks == 1 ? 1 : 2 * (spec.ranks - 1); }

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  auto const p = spec.ranks;
  if (p == 1) return emit_alone(sink);
  auto const sender = round % p, receiver = (round + 1) % p;
  if (rank == sender) sink.send(receiver, round == 0 ? input(0) : output(0));
  if (rank != receiver) return;
  if (round < p - 1)
    sink.recv_reduce(sender, input(0), output(0), round == p - 2 ? Final::yes : Final::no);
  else
    sink.recv(sender, output(0));
}

}  // namespace

plan::Algorithm const ring_naive{
    .name = "ring_naive",
    .summary = "the whole vector twice around a ring: 2(p-1) steps, 2n bytes per rank",
    .check = only_all_reduce,
    .chunks = chunks,
    .scratch_chunks = no_scratch,
    .rounds = rounds,
    .emit = emit,
    .summation = one_by_one,
};

}  // namespace chorus::algorithms
