#include "collectives/topology/locality_groups.hpp"

#include <map>
#include <string_view>
#include <tuple>

namespace chorus::topology {

std::vector<LocalityGroups> locality_groups(std::span<Locality const> localities) {
  std::vector<LocalityGroups> groups(localities.size());
  std::map<std::tuple<std::size_t, std::uint32_t, std::string_view>, std::uint32_t> first;
  for (std::uint32_t worker = 0; worker < localities.size(); ++worker) {
    auto const& at = localities[worker];
    std::array<std::string_view, locality_depth> const labels{at.region, at.zone, at.rack, at.host};
    auto around = std::uint32_t{0};
    for (std::size_t level = 0; level < locality_depth; ++level) {
      around = first.try_emplace({level, around, labels[level]}, worker).first->second;
      groups[worker][level] = around;
    }
  }
  return groups;
}

}  // namespace chorus::topology
