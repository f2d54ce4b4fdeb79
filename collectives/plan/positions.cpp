#include "collectives/plan/positions.hpp"

#include <algorithm>
#include <utility>

#include "collectives/core/assert.hpp"

namespace chorus::plan {

std::uint32_t position_of(Spec const& spec, Rank rank) {
  auto const& order = spec.by_position;
  if (order.empty()) return rank;
  auto const at = std::find(order.begin(), order.end(), rank);
  CHORUS_ASSERT(at != order.end(), "every rank has a position");
  return static_cast<std::uint32_t>(at - order.begin());
}

Spec by_positions(Spec const& spec) {
  auto seen = spec;
  seen.root = position_of(spec, spec.root);
  seen.by_position.clear();
  return seen;
}

Spec with_positions(Algorithm const& algorithm, Spec spec, std::vector<Rank> by_position) {
  bool const is_by_rank = std::is_sorted(by_position.begin(), by_position.end()) ||
                          (algorithm.in_worker_order != nullptr && algorithm.in_worker_order(spec));
  spec.by_position = is_by_rank ? std::vector<Rank>() : std::move(by_position);
  return spec;
}

}  // namespace chorus::plan
