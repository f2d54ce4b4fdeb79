// chain: every rank passes the data of the rank before it on to the next rank: a pipeline with the root at one end.
//
// Steps: p-1. Bytes: a whole vector per rank for reduce and broadcast. With segments all links are busy at once and the
// time is that of p-1 segments and one vector, the minimum for long vectors that no rank sends twice. gather and
// scatter pass on single blocks: up to (p-1)/p n per rank, all of them between neighbours, which suits a network in
// which only neighbours are near.
//
// Ranks are counted from the root on (common/rooted.hpp). gather: in round t place v sends the block of place v + t to
// the place before it. scatter is the reverse. A sum grows from the last place towards the root.
//
// Source: the pipelines ("chain") of Open MPI; Worringen, "Pipelining and overlapping for MPI collective operations",
// LCN 2003.
#include "collectives/algorithms/common/common.hpp"
#include "collectives/algorithms/common/rooted.hpp"
#include "collectives/algorithms/trees/algorithms.hpp"

namespace chorus::algorithms {
namespace {

using plan::Buffer, plan::Final, plan::input, plan::output, plan::Rank, plan::scratch, plan::Sink, plan::Slice,
    plan::Spec;

std::uint32_t rounds(Spec const& spec, Rank) { return spec.ranks == 1 ? 1 : spec.ranks - 1; }

struct Link {
  Link(Spec const& spec, Rank rank)
      : own{place_of(spec, rank), spec.ranks - place_of(spec, rank)},
        next{own.place + 1, own.size - 1},
        towards_root(rank_at(spec, own.place + spec.ranks - 1)) {}

  Subtree own, next;  // `next`: empty at the end of the chain
  Rank towards_root;
};

// In round t the node at distance t from the end sends.
void emit_reduce(Spec const& spec, Link const& link, std::uint32_t round, Sink& sink) {
  if (link.own.size == round + 1) give_up(spec, link.own, link.towards_root, sink);
  if (link.own.size == round + 2)
    take_up(spec, link.own, link.next, Turn::first, link.own.is_root() ? Final::yes : Final::no, sink);
}

void emit_broadcast(Spec const& spec, Link const& link, std::uint32_t round, Sink& sink) {
  if (link.own.place == round + 1) take_down(spec, link.own, link.towards_root, sink);
  if (link.own.place == round && !link.own.is_leaf()) give_down(spec, link.own, link.next, sink);
}

// Returns a block at this rank: its own in `own`, others, which are on their way, in scratch.
Slice block(Spec const& spec, Link const& link, std::uint32_t place, Buffer own) {
  return {place == link.own.place ? own : Buffer::scratch, rank_at(spec, place)};
}

void emit_gather(Spec const& spec, Link const& link, std::uint32_t round, Sink& sink) {
  auto const leaves = link.own.place + round, arrives = leaves + 1;
  if (!link.own.is_root() && leaves < spec.ranks)
    sink.send(link.towards_root, block(spec, link, leaves, Buffer::input));
  if (arrives < spec.ranks) {
    auto const rank = rank_at(spec, arrives);
    sink.recv(rank_at(spec, link.next.place), link.own.is_root() ? output(rank) : scratch(rank));
  }
}

void emit_scatter(Spec const& spec, Link const& link, std::uint32_t round, Sink& sink) {
  auto const turned = spec.ranks - 2 - round;
  auto const arrives = link.own.place + turned, leaves = arrives + 1;
  if (leaves < spec.ranks) {
    auto const rank = rank_at(spec, leaves);
    sink.send(rank_at(spec, link.next.place), link.own.is_root() ? input(rank) : scratch(rank));
  }
  if (!link.own.is_root() && arrives < spec.ranks)
    sink.recv(link.towards_root, block(spec, link, arrives, Buffer::output));
}

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  if (spec.ranks == 1) return emit_alone(sink);
  auto const link = Link(spec, rank);
  if (round == 0 && link.own.is_root()) keep_own(spec, link.own, sink);
  if (spec.op == Op::reduce) return emit_reduce(spec, link, round, sink);
  if (spec.op == Op::broadcast) return emit_broadcast(spec, link, round, sink);
  spec.op == Op::gather ? emit_gather(spec, link, round, sink) : emit_scatter(spec, link, round, sink);
}

}  // namespace

plan::Algorithm const chain{
    .name = "chain",
    .summary = "from neighbour to neighbour in a pipeline: p-1 steps, n bytes per rank",
    .check = only_without_shape<Op::reduce, Op::broadcast, Op::gather, Op::scatter>,
    .chunks = chunk_per_block,
    .scratch_chunks = rooted_scratch,
    .rounds = rounds,
    .emit = emit,
    .summation = one_by_one,
};

}  // namespace chorus::algorithms
