#include "collectives/model/extra_memory.hpp"

#include <algorithm>
#include <set>

#include "collectives/plan/holding.hpp"

namespace chorus::model {

namespace {

constexpr std::uint32_t looked_at_one_by_one = 16;

// The root and ranks near it keep the most.
std::set<plan::Rank> ranks_to_look_at(plan::Spec const& spec) {
  std::set<plan::Rank> ranks;
  auto const p = spec.ranks;
  for (plan::Rank rank = 0; rank < std::min(p, looked_at_one_by_one); ++rank) ranks.insert((spec.root + rank) % p);
  if (p > looked_at_one_by_one) ranks.insert({0, p / 2, p - 1, (spec.root + p / 2) % p});
  return ranks;
}

// Returns the number of chunks beyond twice the larger buffer.
std::uint64_t extra_chunks(plan::Algorithm const& algorithm, plan::Spec const& spec, plan::Rank rank,
                           std::uint32_t chunks) {
  auto const held = plan::memory(spec, rank, chunks);
  std::uint64_t const input = held.input.count, output = held.output.count;
  bool const one_buffer = spec.in_place && input > 0 && output > 0;
  auto const needed = (one_buffer ? output : input + output) + algorithm.scratch_chunks(spec, rank);
  return needed - std::min(needed, 2 * std::max(input, output));
}

}  // namespace

std::uint64_t extra_bytes(plan::Algorithm const& algorithm, plan::Spec const& spec, std::uint64_t vector_bytes) {
  auto const chunks = algorithm.chunks(spec);
  std::uint64_t most = 0;
  for (auto const rank : ranks_to_look_at(spec)) most = std::max(most, extra_chunks(algorithm, spec, rank, chunks));
  return vector_bytes / chunks * most + vector_bytes % chunks * most / chunks;
}

}  // namespace chorus::model
