#include "collectives/verify/problem_for_tests.hpp"

namespace chorus::verify {

using plan::Layout, plan::Rank, plan::Spec;
using Numbers = Interpreter::Numbers;

namespace {

// Returns element i of a rank's whole vector: a multiple of p, so that the average is exact.
std::int64_t value(Spec const& spec, Rank rank, std::uint64_t i) {
  return std::int64_t{spec.ranks} * (std::int64_t{rank} * 1009 + static_cast<std::int64_t>(i * i));
}

}  // namespace

Problem::Problem(Spec const& spec, std::uint64_t elements) : sizes(spec.ranks, {elements, {}, {}}) {
  if (spec.op == Op::all_to_all) {
    auto const blocks = Layout(elements, spec.ranks);
    for (Rank rank = 0; rank < spec.ranks; ++rank) {
      for (Rank peer = 0; peer < spec.ranks; ++peer) sizes[rank].counts.push_back(blocks.range(peer).size());
      sizes[rank].receive_counts.assign(spec.ranks, blocks.range(rank).size());
    }
  }
  fill(spec);
  if (spec.op == Op::all_to_all) sizes.assign(spec.ranks, {elements, {}, {}});  // the same sizes in the short form
}

Problem::Problem(Spec const& spec, std::vector<std::uint64_t> const& counts) : sizes(spec.ranks, {0, counts, {}}) {
  if (spec.op == Op::all_to_all)
    for (Rank rank = 0; rank < spec.ranks; ++rank)
      for (Rank peer = 0; peer < spec.ranks; ++peer)
        sizes[rank].counts[peer] =
            counts[(rank + peer) % spec.ranks];  // symmetric: every rank receives as many elements as it sends
  if (spec.op == Op::all_to_all)
    for (auto& each : sizes) each.receive_counts = each.counts;
  fill(spec);
}

namespace {

// Returns the blocks of a rank, numbered by rank and not by position.
plan::Holding blocks_held(Spec spec, Rank rank) {
  spec.by_position.clear();
  return plan::holding(spec, rank, spec.ranks);
}

}  // namespace

void Problem::fill(Spec const& spec) {
  auto const p = spec.ranks;
  inputs.resize(p);
  expected.resize(p);
  for (Rank rank = 0; rank < p; ++rank) {
    auto const& own = sizes[rank];
    auto const vector = own.counts.empty() ? Layout(own.elements, p) : Layout(own.counts, p);
    auto const held = blocks_held(spec, rank);
    for (auto i = vector.begin_of(held.input.first); i < vector.begin_of(held.input.first + held.input.count); ++i)
      inputs[rank].push_back(value(spec, rank, i));
    auto const from = [&](Rank origin, std::uint64_t i) { expected[rank].push_back(value(spec, origin, i)); };
    for (auto block = held.output.first; block < held.output.first + held.output.count; ++block) {
      if (spec.op == Op::all_to_all) {
        auto const sent = Layout(sizes[block].counts, p).range(rank);
        for (auto i = sent.begin; i < sent.end; ++i) from(block, i);
        continue;
      }
      auto const range = vector.range(block);
      for (auto i = range.begin; i < range.end; ++i) {
        if (!reduces(spec.op)) {
          from(spec.op == Op::broadcast || spec.op == Op::scatter ? spec.root : block, i);
          continue;
        }
        auto sum = std::int64_t{0};
        for (Rank origin = 0; origin < p; ++origin) sum += value(spec, origin, i);
        expected[rank].push_back(sum / p);
      }
    }
  }
}

bool solves(Interpreter const& interpreter, Problem const& problem, Spec const& spec) {
  for (Rank rank = 0; rank < spec.ranks; ++rank) {
    if (interpreter.output(rank) != problem.expected[rank]) return false;
    auto const held = plan::holding(spec, rank, spec.ranks);
    bool const gone = spec.in_place && !held.input.empty() && !held.output.empty();
    if (!gone && interpreter.input(rank) != problem.inputs[rank]) return false;  // a retry needs intact inputs
  }
  return true;
}

}  // namespace chorus::verify
