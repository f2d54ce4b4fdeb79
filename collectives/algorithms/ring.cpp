// ring: every rank owns one chunk of p. Reduced parts travel once around the ring, finished chunks once more.
//
// Steps: 2 (p-1), all ranks busy in each. Bytes: every rank sends 2 (p-1)/p n, which is the least that is possible;
// nobody needs more than its two neighbours. Best for long vectors; for short ones its 2 (p-1) latencies count.
//
// Round t of the first half: rank r sends chunk r - t, of which it holds t + 1 contributions, and adds its own to chunk
// r - t - 1. After p - 1 rounds rank r has all of chunk r + 1. The second half passes the finished chunks on.
//
// Source: Patarasu and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 2009;
// Thakur, Rabenseifner, Gropp, IJHPCA 2005.
#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/common.hpp"

namespace chorus::algorithms {
namespace {

using plan::Final, plan::input, plan::output, plan::Rank, plan::Sink, plan::Spec;

std::uint32_t chunks(Spec const& spec) { return spec.ranks; }

std::uint32_t rounds(Spec const& spec, Rank) { return spec.ranks == 1 ? 1 : 2 * (spec.ranks - 1); }

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  auto const p = spec.ranks;
  if (p == 1) return emit_alone(sink);
  auto const next = (rank + 1) % p, previous = (rank + p - 1) % p;
  auto const minus = [p](std::uint32_t chunk, std::uint32_t steps) { return (chunk + p - steps) % p; };  // steps <= p

  if (round < p - 1) {
    auto const part = minus(rank, round), mine = minus(rank, round + 1);
    sink.send(next, round == 0 ? input(part) : output(part));
    sink.recv_reduce(previous, input(mine), output(mine), round == p - 2 ? Final::yes : Final::no);
  } else {
    auto const step = round - (p - 1);
    sink.send(next, output(minus(rank + 1, step)));
    sink.recv(previous, output(minus(rank, step)));
  }
}

}  // namespace

plan::Algorithm const ring{
    .name = "ring",
    .summary = "reduce-scatter and all-gather around a ring: 2(p-1) steps, 2(p-1)/p n bytes per rank",
    .check = only_all_reduce,
    .chunks = chunks,
    .scratch_chunks = no_scratch,
    .rounds = rounds,
    .emit = emit,
};

}  // namespace chorus::algorithms
