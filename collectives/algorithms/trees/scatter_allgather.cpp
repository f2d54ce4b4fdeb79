// scatter_allgather: a broadcast that first scatters the vector, then gathers its parts at every rank.
//
// Steps: ceil(log2 p) + p-1. Bytes: at most 2 (p-1)/p n per rank, where a binomial tree sends n log2 p: best for long
// vectors. The parts travel down a binomial tree, then around a ring in which no rank gets a part twice.
//
// Places are counted from the root on (common/rooted.hpp); chunk c is the part of place c. After the first phase place
// v has the chunks of its subtree. Round t of the second phase brings it chunk v - t - 1.
//
// Source: Barnett, Gupta, Payne, Shuler, van de Geijn, Watts, "Interprocessor collective communication library", SHPCC
// 1994; Zhou, Marjanovic, Niethammer, Gracia, "A bandwidth-saving optimization for MPI broadcast collective operation",
// ICPP Workshops 2015.
#include "collectives/algorithms/common/common.hpp"
#include "collectives/algorithms/common/powers.hpp"
#include "collectives/algorithms/trees/algorithms.hpp"
#include "collectives/algorithms/trees/binomial_tree.hpp"

namespace chorus::algorithms {
namespace {

using plan::Buffer, plan::input, plan::output, plan::Rank, plan::Sink, plan::Spec;

std::uint32_t rounds(Spec const& spec, Rank) { return spec.ranks == 1 ? 1 : doublings(spec.ranks) + spec.ranks - 1; }

Buffer whole(Subtree const& own) { return own.is_root() ? Buffer::input : Buffer::output; }

void emit_scatter(Spec const& spec, Subtree const& own, std::uint32_t round, Sink& sink) {
  auto const distance = 1u << (doublings(spec.ranks) - 1 - round);
  if (is_binomial_child(own.place, distance))
    sink.recv(rank_at(spec, own.place - distance), output(own.place, own.size));
  if (!is_binomial_parent(spec.ranks, own.place, distance)) return;
  auto const child = binomial_subtree(spec.ranks, own.place + distance);
  sink.send(rank_at(spec, child.place), {whole(own), child.place, child.size});
}

void emit_ring(Spec const& spec, Subtree const& own, std::uint32_t step, Sink& sink) {
  auto const p = spec.ranks;
  auto const lacks = [&](Subtree const& at) { return step < p - at.size; };  // the ring would bring its own parts last
  auto const chunk_of = [&](std::uint32_t steps) { return (own.place + p - steps) % p; };
  auto const next = binomial_subtree(p, (own.place + 1) % p);
  if (lacks(next)) sink.send(rank_at(spec, next.place), {whole(own), chunk_of(step)});
  if (lacks(own)) sink.recv(rank_at(spec, own.place + p - 1), output(chunk_of(step + 1)));
}

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  if (spec.ranks == 1) return emit_alone(sink);
  auto const own = binomial_subtree(spec.ranks, place_of(spec, rank));
  auto const levels = doublings(spec.ranks);
  if (round == 0 && own.is_root()) sink.copy(input(0, spec.ranks), output(0, spec.ranks));
  round < levels ? emit_scatter(spec, own, round, sink) : emit_ring(spec, own, round - levels, sink);
}

}  // namespace

plan::Algorithm const scatter_allgather{
    .name = "scatter_allgather",
    .summary = "scatter down a binomial tree, all-gather around a ring: ceil(log2 p) + p-1 steps, 2(p-1)/p n bytes",
    .check = only_without_shape<Op::broadcast>,
    .chunks = chunk_per_rank,
    .scratch_chunks = no_scratch,
    .rounds = rounds,
    .emit = emit,
};

}  // namespace chorus::algorithms
