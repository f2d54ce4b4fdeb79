// dissemination: a barrier in which every rank reports the ranks that have arrived to ranks at distance 1, 2, 4, ...
//
// Steps: ceil(log2 p), the minimum, for every p. Bytes: p-1 signs of one byte per rank.
//
// Before round j rank r knows the arrival of the ranks r - 2^j + 1 ... r, and passes on those that rank r + 2^j cannot
// know yet. If these numbers wrap around the last rank they are two messages.
//
// Source: Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization", 1988.
#include <algorithm>

#include "collectives/algorithms/common/common.hpp"
#include "collectives/algorithms/common/powers.hpp"
#include "collectives/algorithms/common/rooted.hpp"
#include "collectives/algorithms/doubling/algorithms.hpp"

namespace chorus::algorithms {
namespace {

using plan::input, plan::output, plan::Rank, plan::Sink, plan::Spec;

std::uint32_t rounds(Spec const& spec, Rank) { return std::max(1u, doublings(spec.ranks)); }

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  auto const p = spec.ranks;
  if (p == 1) return emit_alone(sink);
  auto const distance = 1u << round, count = std::min(distance, p - distance);
  auto const to = (rank + distance) % p, from = (rank + p - distance) % p;
  auto const for_last_of = [&](Rank end, auto use) { for_each_range((end + p + 1 - count) % p, count, p, use); };
  if (round == 0) {
    sink.send(to, input(rank));
    sink.copy(input(rank), output(rank));
  } else {
    for_last_of(rank, [&](std::uint32_t first, std::uint32_t n) { sink.send(to, output(first, n)); });
  }
  for_last_of(from, [&](std::uint32_t first, std::uint32_t n) { sink.recv(from, output(first, n)); });
}

}  // namespace

plan::Algorithm const dissemination{
    .name = "dissemination",
    .summary = "a barrier by signs at distance 1, 2, 4, ...: ceil(log2 p) steps for every p",
    .check = only_without_shape<Op::barrier>,
    .chunks = chunk_per_rank,
    .scratch_chunks = no_scratch,
    .rounds = rounds,
    .emit = emit,
};

}  // namespace chorus::algorithms
