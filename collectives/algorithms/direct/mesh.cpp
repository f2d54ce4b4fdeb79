// mesh: every rank sends its whole vector to every other, and every rank reduces all of them.
//
// Steps: 2p - 3, one message out and one in at each; sends depend on nothing, so where sends are buffered the time is
// one latency. Bytes: every rank sends and receives (p-1) n. The least latency of all, for tiny vectors on few ranks;
// the textbook's full mesh, MSCCL's one-shot all-pairs.
//
// Every rank takes the contributions in worker order, so all of them compute the same bits. Ranks s and q exchange in
// round s + q: then every rank meets the others by ascending rank and none ever has two partners. All must begin with
// rank 0's vector, which can leave rank 0 no faster than one by one, so no order without buffers is shorter. In round
// 2r rank r meets itself: it adds its own.
//
// In place the sum grows in scratch, and overwrites the rank's own vector when every rank has that vector. So receives
// never wait for sends, and members that share memory add all vectors in one pass, without a stored sum in f32.
#include "collectives/algorithms/common/common.hpp"
#include "collectives/algorithms/common/in_turn.hpp"
#include "collectives/algorithms/direct/algorithms.hpp"

namespace chorus::algorithms {
namespace {

using plan::Final, plan::input, plan::output, plan::Rank, plan::scratch, plan::Sink, plan::Spec;

std::uint32_t chunks(Spec const&) { return 1; }

std::uint32_t scratch_chunks(Spec const& spec, Rank) { return scratch_in_turn(spec, 1); }

std::uint32_t rounds(Spec const& spec, Rank) { return 2 * spec.ranks - 1; }

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  if (spec.ranks == 1) return emit_alone(sink);
  if (round < rank || round - rank >= spec.ranks) return;
  auto const peer = round - rank;
  if (peer != rank) sink.send(peer, input(0));
  if (spec.in_place && peer == spec.ranks - 1 && rank != peer) {
    sink.recv_reduce(peer, peer == 1 ? input(0) : scratch(0), scratch(0), Final::yes);
    return sink.copy(scratch(0), output(0));
  }
  reduce_in_turn(spec, rank, peer, 0, sink);
}

bool in_worker_order(Spec const&) { return true; }

}  // namespace

plan::Algorithm const mesh{
    .name = "mesh",
    .summary = "all send all to all: 2p-3 steps, (p-1)n bytes per rank, one latency where sends are buffered",
    .check = only_all_reduce,
    .chunks = chunks,
    .scratch_chunks = scratch_chunks,
    .rounds = rounds,
    .emit = emit,
    .in_worker_order = in_worker_order,
};

}  // namespace chorus::algorithms
