// Localities as small numbers: comparing two workers takes four integers instead of four strings.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/core/locality.hpp"

namespace chorus::topology {

inline constexpr std::size_t locality_depth = 4;  // region, zone, rack, host
using LocalityGroups = std::array<std::uint32_t, locality_depth>;

// Per worker and level, the outermost first: the number of its group, which is the index of the group's first member. A
// group of one level is within one group of the level around it, so host "a" in two zones is two groups.
[[nodiscard]] std::vector<LocalityGroups> locality_groups(std::span<Locality const> localities);

// shared_level() of two workers, computed from their groups.
[[nodiscard]] inline Level shared_level(LocalityGroups const& a, LocalityGroups const& b) {
  auto level = static_cast<std::size_t>(Level::world);
  for (std::size_t depth = 0; depth < locality_depth && a[depth] == b[depth]; ++depth) --level;
  return static_cast<Level>(level);
}

}  // namespace chorus::topology
