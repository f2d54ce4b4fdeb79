#include "collectives/topology/order.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string>
#include <tuple>

#include "collectives/core/assert.hpp"

namespace chorus::topology {
namespace {

constexpr std::size_t depth = 4;  // region, zone, rack, host
using Groups = std::array<std::uint32_t, depth>;

// Per worker and level, the number of its group: the index of the group's first member. A group at one level lies
// within one group of the level around it, so host "a" in two zones is two groups.
std::vector<Groups> groups_of(std::span<Locality const> localities) {
  std::vector<Groups> groups(localities.size());
  std::map<std::tuple<std::size_t, std::uint32_t, std::string_view>, std::uint32_t> first;
  for (std::uint32_t worker = 0; worker < localities.size(); ++worker) {
    auto const& at = localities[worker];
    std::array<std::string_view, depth> const labels{at.region, at.zone, at.rack, at.host};
    auto around = std::uint32_t{0};
    for (std::size_t level = 0; level < depth; ++level) {
      around = first.try_emplace({level, around, labels[level]}, worker).first->second;
      groups[worker][level] = around;
    }
  }
  return groups;
}

}  // namespace

std::vector<std::uint32_t> order_by_locality(std::span<Locality const> localities) {
  auto const groups = groups_of(localities);
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
  auto const groups = groups_of(localities);
  std::array<std::vector<std::uint32_t>, depth> members;
  for (std::size_t level = 0; level < depth; ++level) {
    members[level].resize(localities.size());
    for (auto const& group : groups) ++members[level][group[level]];
  }
  // The distance to a worker is the number of levels not shared with it, so the least distance to all is the most
  // company, summed over the levels.
  auto const company = [&](std::uint32_t worker) {
    auto sum = std::uint64_t{0};
    for (std::size_t level = 0; level < depth; ++level) sum += members[level][groups[worker][level]];
    return sum;
  };
  auto best = std::uint32_t{0};
  for (std::uint32_t worker = 1; worker < localities.size(); ++worker)
    if (company(worker) > company(best)) best = worker;
  return best;
}

}  // namespace chorus::topology
