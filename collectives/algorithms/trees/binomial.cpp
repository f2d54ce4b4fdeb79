// binomial: a tree in which every rank that has the data passes it on in every round: each round doubles these ranks.
//
// Steps: ceil(log2 p) for each of the two directions, the minimum. Bytes: reduce, all_reduce and broadcast send whole
// vectors, the root up to ceil(log2 p) of them; gather and scatter send whole subtrees of blocks: the root (p-1)/p n.
// Best for short vectors on many ranks. A barrier gathers signs of arrival and broadcasts them.
//
// The tree is that of binomial_tree.hpp. A node adds its children from the nearest to the farthest.
//
// Source: MPICH and Open MPI (MPI_Reduce, MPI_Bcast, MPI_Gather, MPI_Scatter for short vectors).
#include "collectives/algorithms/common/common.hpp"
#include "collectives/algorithms/common/powers.hpp"
#include "collectives/algorithms/trees/algorithms.hpp"
#include "collectives/algorithms/trees/binomial_tree.hpp"

namespace chorus::algorithms {
namespace {

using plan::Final, plan::Rank, plan::Sink, plan::Spec;

std::uint32_t rounds(Spec const& spec, Rank) {
  return spec.ranks == 1 ? 1 : directions(spec.op) * doublings(spec.ranks);
}

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  if (spec.ranks == 1) return emit_alone(sink);
  auto const levels = doublings(spec.ranks);
  bool const up = goes_up(spec.op) && round < levels;
  auto const step = round % levels;
  auto const distance = 1u << (up ? step : levels - 1 - step);
  auto const own = binomial_subtree(spec.ranks, place_of(spec, rank));
  if (round == 0) keep_own(spec, own, sink);

  if (is_binomial_child(own.place, distance)) {
    auto const parent = rank_at(spec, own.place - distance);
    up ? give_up(spec, own, parent, sink) : take_down(spec, own, parent, sink);
  } else if (is_binomial_parent(spec.ranks, own.place, distance)) {
    auto const child = binomial_subtree(spec.ranks, own.place + distance);
    if (!up) return give_down(spec, own, child, sink);
    bool const last = own.is_root() && step + 1 == levels;
    take_up(spec, own, child, step == 0 ? Turn::first : Turn::later, last ? Final::yes : Final::no, sink);
  }
}

}  // namespace

plan::Algorithm const binomial{
    .name = "binomial",
    .summary = "up or down a binomial tree, or both: ceil(log2 p) steps each way, whole vectors or subtrees of blocks",
    .check = only_without_shape<Op::all_reduce, Op::reduce, Op::broadcast, Op::gather, Op::scatter, Op::barrier>,
    .chunks = chunk_per_block,
    .scratch_chunks = rooted_scratch,
    .rounds = rounds,
    .emit = emit,
    .rooted = true,
    .summation = pairs_of_powers,
};

}  // namespace chorus::algorithms
