#include "collectives/model/measured_levels.hpp"

#include <algorithm>
#include <vector>

#include "collectives/core/assert.hpp"

namespace chorus::model {
namespace {

// Returns the median; of an even number the lesser of the middle two, because disturbances make measurements larger.
double middle(std::deque<LinkCost> const& links, double LinkCost::*of) {
  std::vector<double> values;
  values.reserve(links.size());
  for (auto const& link : links) values.push_back(link.*of);
  auto const at = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, at);
  return *at;
}

}  // namespace

void MeasuredLevels::add(Level level, double alpha_s, double bytes_per_s) {
  CHORUS_ASSERT(level != Level::host, "workers of one host reach each other in ways that a probe does not take");
  auto const at = static_cast<std::size_t>(level);
  auto& links = measured_[at];
  links.push_back({alpha_s, 1 / bytes_per_s});
  if (links.size() > links_remembered) links.pop_front();

  auto const& uplinks = before_.uplink_s_per_byte;
  auto const slowest_uplink = *std::max_element(uplinks.begin(), uplinks.begin() + static_cast<std::ptrdiff_t>(at));
  auto const known = before_.level[at].beta_s_per_byte;
  auto const beta = middle(links, &LinkCost::beta_s_per_byte);
  bool const tells_of_uplink = slowest_uplink > known && beta <= explained_by_uplink * slowest_uplink;
  constants_.level[at] = {middle(links, &LinkCost::alpha_s), tells_of_uplink ? known : beta};
}

}  // namespace chorus::model
