#include "collectives/topology/orders/root.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "collectives/core/assert.hpp"

namespace chorus::topology {
namespace {

// The candidates with the least value.
std::vector<std::uint32_t> keep_least(std::vector<std::uint32_t> candidates, std::vector<double> const& value) {
  auto const least = value[*std::min_element(candidates.begin(), candidates.end(),
                                             [&](auto a, auto b) { return value[a] < value[b]; })];
  std::erase_if(candidates, [&](auto candidate) { return value[candidate] > least * (1 + 1e-9); });
  return candidates;
}

}  // namespace

std::uint32_t root_of_least_cost(SquareMatrix const& costs) {
  auto const size = costs.size();
  CHORUS_ASSERT(size > 0, "a root needs a worker");
  std::vector<double> sum(size), farthest(size);
  for (std::uint32_t i = 0; i < size; ++i)
    for (std::uint32_t j = 0; j < size; ++j) {
      if (i == j) continue;
      auto const both = costs.at(i, j) + costs.at(j, i);
      sum[i] += both;
      farthest[i] = std::max(farthest[i], both);
    }
  std::vector<std::uint32_t> candidates(size);
  std::iota(candidates.begin(), candidates.end(), 0);
  return keep_least(keep_least(std::move(candidates), sum), farthest).front();
}

}  // namespace chorus::topology
