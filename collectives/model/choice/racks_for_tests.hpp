// A network for tests in which codes pay: racks of two hosts with one rank each, and links of one bandwidth.
#pragma once

#include <string>
#include <vector>

#include "collectives/core/locality.hpp"
#include "collectives/model/constants.hpp"

namespace chorus::model {

inline std::vector<Locality> racks(int count) {
  std::vector<Locality> localities;
  for (int rank = 0; rank < 2 * count; ++rank)
    localities.push_back({"", "", "r" + std::to_string(rank / 2), "h" + std::to_string(rank)});
  return localities;
}

// Of every level, and of a host's network card.
inline Constants with_links(double bytes_per_s) {
  auto constants = Constants::defaults();
  for (auto& link : constants.level) link.beta_s_per_byte = 1 / bytes_per_s;
  constants.uplink_s_per_byte = {1 / bytes_per_s, 0, 0, 0};
  return constants;
}

}  // namespace chorus::model
