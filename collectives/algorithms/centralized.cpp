// centralized: everyone sends to the root, the root reduces and sends the result to everyone.
//
// Steps: 2 (p-1), one message at a time at the root. Bytes: the root sends and receives (p-1) n, everyone else n.
// Simple, exact about its order, and the fastest for two ranks and tiny vectors; the root is the bottleneck of all
// else.
//
// The order of reduction is the root's own contribution, then those of the others by ascending rank: with root 0 that
// is the order of the workers, whatever the timing.
//
// Source: the linear algorithms of Open MPI and MPICH (MPI_Reduce followed by MPI_Bcast).
#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/common.hpp"

namespace chorus::algorithms {
namespace {

using plan::Final, plan::input, plan::output, plan::Rank, plan::Sink, plan::Spec;

std::uint32_t chunks(Spec const&) { return 1; }

std::uint32_t rounds(Spec const& spec, Rank) { return spec.ranks == 1 ? 1 : 2 * (spec.ranks - 1); }

// The others are the ranks but the root, ascending.
Rank other(Spec const& spec, std::uint32_t position) { return position < spec.root ? position : position + 1; }

std::uint32_t position_of(Spec const& spec, Rank rank) { return rank < spec.root ? rank : rank - 1; }

void emit_root(Spec const& spec, std::uint32_t round, Sink& sink) {
  auto const others = spec.ranks - 1;
  if (round < others) {
    auto const operand = round == 0 ? input(0) : output(0);
    sink.recv_reduce(other(spec, round), operand, output(0), round + 1 == others ? Final::yes : Final::no);
  } else {
    sink.send(other(spec, round - others), output(0));
  }
}

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  if (spec.ranks == 1) return emit_alone(sink);
  if (rank == spec.root) return emit_root(spec, round, sink);
  auto const position = position_of(spec, rank);
  if (round == position) sink.send(spec.root, input(0));
  if (round == spec.ranks - 1 + position) sink.recv(spec.root, output(0));
}

}  // namespace

plan::Algorithm const centralized{
    .name = "centralized",
    .summary = "all to the root and back: 2(p-1) steps, (p-1)n bytes through the root",
    .check = only_all_reduce,
    .chunks = chunks,
    .scratch_chunks = no_scratch,
    .rounds = rounds,
    .emit = emit,
    .rooted = true,
};

}  // namespace chorus::algorithms
