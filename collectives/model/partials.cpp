#include "collectives/model/partials.hpp"

#include <algorithm>
#include <set>

#include "collectives/plan/layout.hpp"
#include "collectives/plan/passes.hpp"
#include "collectives/plan/program.hpp"

namespace chorus::model {

namespace {

constexpr std::uint32_t looked_at_one_by_one = 16;

// Roots and those below them keep most.
std::set<plan::Rank> ranks_to_look_at(plan::Spec const& spec) {
  std::set<plan::Rank> ranks;
  auto const p = spec.ranks;
  for (plan::Rank rank = 0; rank < std::min(p, looked_at_one_by_one); ++rank) ranks.insert((spec.root + rank) % p);
  if (p > looked_at_one_by_one) ranks.insert({0, p / 2, p - 1});
  return ranks;
}

}  // namespace

std::uint64_t partial_bytes(plan::Algorithm const& algorithm, plan::Spec const& spec, std::uint64_t elements) {
  std::uint64_t most = 0;
  for (auto const rank : ranks_to_look_at(spec)) {
    auto const program = plan::build(algorithm, spec, rank);
    if (program.has_error()) continue;
    plan::Layout const layout(elements, program->chunks);
    std::uint64_t bytes = 0;
    for (auto const buffer : {plan::Buffer::output, plan::Buffer::scratch}) {
      auto const kept = plan::wide_chunks(*program, buffer);
      for (auto chunk = kept.first; chunk < kept.first + kept.count; ++chunk)
        bytes += layout.range(chunk % program->chunks).size() * sizeof(float);
    }
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace chorus::model
