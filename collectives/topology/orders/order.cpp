#include "collectives/topology/orders/order.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

#include "collectives/core/assert.hpp"
#include "collectives/topology/locality_groups.hpp"

namespace chorus::topology {

std::vector<std::uint32_t> order_by_locality(std::span<Locality const> localities) {
  auto const groups = locality_groups(localities);
  std::vector<std::uint32_t> order(localities.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](auto a, auto b) { return std::tie(groups[a], a) < std::tie(groups[b], b); });
  return order;
}

double ring_stretch(std::span<Locality const> in_rank_order) {
  auto const count = in_rank_order.size();
  if (count < 2) return 0;
  auto sum = std::uint64_t{0};
  for (std::size_t i = 0; i < count; ++i)
    sum += static_cast<std::uint64_t>(shared_level(in_rank_order[i], in_rank_order[(i + 1) % count]));
  return static_cast<double>(sum) / static_cast<double>(count);
}

std::uint32_t center(std::span<Locality const> localities) {
  CHORUS_ASSERT(!localities.empty(), "a center needs a worker");
  auto const groups = locality_groups(localities);
  std::array<std::vector<std::uint32_t>, locality_depth> members;
  for (std::size_t level = 0; level < locality_depth; ++level) {
    members[level].resize(localities.size());
    for (auto const& group : groups) ++members[level][group[level]];
  }
  // The distance to a worker is the number of levels not shared with it, so the least sum of distances means the most
  // members of own groups, summed over the levels.
  auto const company = [&](std::uint32_t worker) {
    auto sum = std::uint64_t{0};
    for (std::size_t level = 0; level < locality_depth; ++level) sum += members[level][groups[worker][level]];
    return sum;
  };
  auto best = std::uint32_t{0};
  for (std::uint32_t worker = 1; worker < localities.size(); ++worker)
    if (company(worker) > company(best)) best = worker;
  return best;
}

}  // namespace chorus::topology
