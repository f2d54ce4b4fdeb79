// allpairs: rank q owns chunk q of p. Every rank sends every owner its chunk; the owner reduces it and sends it to all.
//
// Steps: 3p - 3. Bytes: every rank sends and receives 2 (p-1)/p n, the minimum, in two latencies where sends are
// buffered: best for middle sizes on networks where all pairs are equally near.
//
// Owners take the contributions in worker order, as in mesh: ranks s and q exchange in round s + q. An order that keeps
// all ranks busy, 2 (p-1) steps, would need room for p - 1 contributions that come too early and one more pass over
// them; segments close the gap without that, because they follow each other through the chain of an owner's receives.
// Finished chunks follow: s and q exchange theirs in round p + s + q, when both are finished. The ranks without a
// reduction in a round p + x already own a finished chunk. So both exchanges share these rounds without two partners.
//
// Source: direct reduce-scatter and all-gather; MSCCL's two-shot all-pairs.
#include "collectives/algorithms/common/common.hpp"
#include "collectives/algorithms/common/in_turn.hpp"
#include "collectives/algorithms/direct/algorithms.hpp"

namespace chorus::algorithms {
namespace {

using plan::input, plan::output, plan::Rank, plan::Sink, plan::Spec;

std::uint32_t chunks(Spec const& spec) { return spec.ranks; }

std::uint32_t scratch_chunks(Spec const& spec, Rank) { return scratch_in_turn(spec, spec.ranks); }

// s + q is at most 2p - 3 for s != q.
std::uint32_t rounds(Spec const& spec, Rank) { return spec.ranks == 1 ? 1 : 3 * spec.ranks - 2; }

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  auto const p = spec.ranks;
  if (p == 1) return emit_alone(sink);
  if (round < rank) return;
  auto const meets = round - rank;
  if (meets < p) {
    if (meets != rank) sink.send(meets, input(meets));
    reduce_in_turn(spec, rank, meets, rank, sink);
  } else if (auto const peer = meets - p; peer < p && peer != rank) {
    sink.send(peer, output(rank));
    sink.recv(peer, output(peer));
  }
}

bool in_worker_order(Spec const&) { return true; }

}  // namespace

plan::Algorithm const allpairs{
    .name = "allpairs",
    .summary = "chunks straight to their owners and back to all: 3p-3 steps, 2(p-1)/p n bytes per rank",
    .check = only_all_reduce,
    .chunks = chunks,
    .scratch_chunks = scratch_chunks,
    .rounds = rounds,
    .emit = emit,
    .in_worker_order = in_worker_order,
};

}  // namespace chorus::algorithms
