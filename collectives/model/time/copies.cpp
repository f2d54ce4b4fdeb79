#include "collectives/model/time/copies.hpp"

#include <algorithm>

namespace chorus::model {

double copies_s(Network const& network, plan::Rank from, plan::Rank to, std::uint64_t bytes) {
  constexpr std::uint64_t piece_bytes = 65536;  // the unit in which the kernel copies
  if (!network.shares_cores() || network.host(from) != network.host(to)) return 0;
  auto const more = 2 * network.constants().byte_cpu_s - network.link(from, to).beta_s_per_byte;
  return static_cast<double>(std::min(bytes, piece_bytes)) * std::max(more, 0.0);
}

}  // namespace chorus::model
