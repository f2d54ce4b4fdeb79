#include "collectives/topology/orders/held_karp.hpp"

#include <algorithm>
#include <limits>

namespace chorus::topology {

// The tour begins and ends at worker 0. For the others, path(set, last) is the least cost of a path from 0 through all
// of `set` that ends at its member `last`. Bit i stands for worker i + 1.
std::vector<std::uint32_t> cheapest_tour(SquareMatrix const& costs) {
  auto const others = costs.size() - 1;
  if (others == 0) return {0};
  auto const sets = std::uint32_t{1} << others;
  std::vector<double> path(std::size_t{sets} * others, std::numeric_limits<double>::infinity());
  auto const at = [&](std::uint32_t set, std::uint32_t last) -> double& {
    return path[std::size_t{set} * others + last];
  };
  for (std::uint32_t last = 0; last < others; ++last) at(1u << last, last) = costs.at(0, last + 1);
  for (std::uint32_t set = 1; set < sets; ++set)
    for (std::uint32_t last = 0; last < others; ++last) {
      if ((set >> last & 1) == 0) continue;
      auto const before = set & ~(1u << last);
      for (std::uint32_t via = 0; via < others; ++via)
        if ((before >> via & 1) != 0)
          at(set, last) = std::min(at(set, last), at(before, via) + costs.at(via + 1, last + 1));
    }

  // Backwards: first the worker that closes the tour most cheaply, and so on. The sums are those above, so exact
  // comparison finds the path that was taken.
  std::vector<std::uint32_t> reversed;
  auto set = sets - 1;
  auto after = std::uint32_t{0};
  while (set != 0) {
    auto best = std::uint32_t{0};
    auto least = std::numeric_limits<double>::infinity();
    for (std::uint32_t last = 0; last < others; ++last)
      if ((set >> last & 1) != 0 && at(set, last) + costs.at(last + 1, after) < least) {
        least = at(set, last) + costs.at(last + 1, after);
        best = last;
      }
    reversed.push_back(best + 1);
    after = best + 1;
    set &= ~(1u << best);
  }
  reversed.push_back(0);
  return {reversed.rbegin(), reversed.rend()};
}

}  // namespace chorus::topology
