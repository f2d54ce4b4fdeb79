// bruck: doubling around the ring of ranks, for every p.
//
// all_gather: ceil(log2 p) steps, (p-1)/p n bytes per rank, both minimal. Before round j rank r has the blocks r ... r
// + 2^j - 1 and sends them to r - 2^j. They are in their final places from the start, so nothing is rotated at the end;
// a range that wraps around the last rank is two messages.
//
// all_to_all: ceil(log2 p) steps, about n/2 log2 p bytes per rank: best for short vectors. Place i of a rank holds the
// block that still has to travel i ranks. Round j sends all places with bit j to r + 2^j, into the same places, packed
// into one message; then place i has the block from r - i. Blocks travel in places of other blocks, so all must have
// one size.
//
// Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all communications in multiport
// message-passing systems", IEEE TPDS 1997.
#include <algorithm>

#include "collectives/algorithms/common/common.hpp"
#include "collectives/algorithms/common/powers.hpp"
#include "collectives/algorithms/common/rooted.hpp"
#include "collectives/algorithms/doubling/algorithms.hpp"

namespace chorus::algorithms {
namespace {

using plan::input, plan::output, plan::Rank, plan::scratch, plan::Sink, plan::Slice, plan::Spec;

bool exchanges_all(Spec const& spec) { return spec.op == Op::all_to_all && spec.ranks > 1; }

// Scratch has p places, p packed blocks and p arrived blocks.
std::uint32_t scratch_chunks(Spec const& spec, Rank) { return exchanges_all(spec) ? 3 * spec.ranks : 0; }
Slice places(std::uint32_t first, std::uint32_t count) { return scratch(first, count); }
Slice packed(Spec const& spec, std::uint32_t first, std::uint32_t count) { return scratch(spec.ranks + first, count); }
Slice arrived(Spec const& spec, std::uint32_t first, std::uint32_t count) {
  return scratch(2 * spec.ranks + first, count);
}

// The first round of an all_to_all fills the places and packs blocks. Every other round sends, receives, unpacks and
// packs the next blocks; the last one empties the places instead.
std::uint32_t rounds(Spec const& spec, Rank) {
  return std::max(1u, doublings(spec.ranks)) + (exchanges_all(spec) ? 1 : 0);
}

// Calls use(place, count, before) for each run of places with this bit; `before`: number of such places before it.
template <class Use>
std::uint32_t for_places_with(std::uint32_t p, std::uint32_t bit, Use use) {
  auto before = std::uint32_t{0};
  for (auto place = bit; place < p; place += 2 * bit) {
    auto const count = std::min(bit, p - place);
    use(place, count, before);
    before += count;
  }
  return before;
}

void pack(Spec const& spec, std::uint32_t bit, Sink& sink) {
  for_places_with(spec.ranks, bit, [&](std::uint32_t place, std::uint32_t count, std::uint32_t before) {
    sink.copy(places(place, count), packed(spec, before, count));
  });
}

// Place 0 is the rank's own block, which stays.
void fill_places(Spec const& spec, Rank rank, Sink& sink) {
  auto const p = spec.ranks;
  sink.copy(input(rank), output(rank));
  auto place = std::uint32_t{1};
  for_each_range((rank + 1) % p, p - 1, p, [&](std::uint32_t first, std::uint32_t count) {
    sink.copy(input(first, count), places(place, count));
    place += count;
  });
}

void empty_places(Spec const& spec, Rank rank, Sink& sink) {
  for (std::uint32_t i = 1; i < spec.ranks; ++i) sink.copy(places(i, 1), output((rank + spec.ranks - i) % spec.ranks));
}

void emit_all_to_all(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  auto const p = spec.ranks;
  if (round == 0) {
    fill_places(spec, rank, sink);
  } else {
    auto const bit = 1u << (round - 1);
    auto const count = for_places_with(p, bit, [](auto...) {});
    sink.send((rank + bit) % p, packed(spec, 0, count));
    sink.recv((rank + p - bit) % p, arrived(spec, 0, count));
    for_places_with(p, bit, [&](std::uint32_t place, std::uint32_t n, std::uint32_t before) {
      sink.copy(arrived(spec, before, n), places(place, n));
    });
  }
  if (auto const next = 1u << round; next < p)
    pack(spec, next, sink);
  else
    empty_places(spec, rank, sink);
}

void emit_all_gather(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  auto const p = spec.ranks;
  auto const distance = 1u << round, count = std::min(distance, p - distance);
  auto const to = (rank + p - distance) % p, from = (rank + distance) % p;
  if (round == 0) {
    sink.send(to, input(rank));
    sink.copy(input(rank), output(rank));
  } else {
    for_each_range(rank, count, p, [&](std::uint32_t first, std::uint32_t n) { sink.send(to, output(first, n)); });
  }
  for_each_range(from, count, p, [&](std::uint32_t first, std::uint32_t n) { sink.recv(from, output(first, n)); });
}

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  if (spec.ranks == 1) return emit_alone(sink);
  spec.op == Op::all_to_all ? emit_all_to_all(spec, rank, round, sink) : emit_all_gather(spec, rank, round, sink);
}

}  // namespace

plan::Algorithm const bruck{
    .name = "bruck",
    .summary =
        "doubling around the ring for every p: ceil(log2 p) steps, (p-1)/p n bytes per rank to gather, about "
        "n/2 log2 p from all to all",
    .check = only_without_shape<Op::all_gather, Op::all_to_all>,
    .chunks = chunk_per_rank,
    .scratch_chunks = scratch_chunks,
    .rounds = rounds,
    .emit = emit,
    .equal_chunks = [](Spec const& spec) { return exchanges_all(spec); },
};

}  // namespace chorus::algorithms
