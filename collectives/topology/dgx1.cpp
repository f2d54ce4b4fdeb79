#include "collectives/topology/dgx1.hpp"

#include <array>

namespace chorus::topology {

LinkMatrix dgx1_matrix() {
  constexpr std::array<std::array<int, 8>, 8> lanes{{
      // NVLinks between two GPUs
      {0, 1, 1, 2, 2, 0, 0, 0},
      {1, 0, 2, 1, 0, 2, 0, 0},
      {1, 2, 0, 2, 0, 0, 1, 0},
      {2, 1, 2, 0, 0, 0, 0, 1},
      {2, 0, 0, 0, 0, 1, 1, 2},
      {0, 2, 0, 0, 1, 0, 2, 1},
      {0, 0, 1, 0, 1, 2, 0, 2},
      {0, 0, 0, 1, 2, 1, 2, 0},
  }};
  LinkMatrix::Rows bandwidth, latency;
  for (auto const& row : lanes) {
    auto& bandwidths = bandwidth.emplace_back();
    auto& latencies = latency.emplace_back();
    for (auto const count : row) {
      bandwidths.push_back(count == 0 ? 10 : 25 * count);
      latencies.push_back(count == 0 ? 1.0e-6 : 0.6e-6);
    }
  }
  return LinkMatrix::make(bandwidth, latency).value();
}

}  // namespace chorus::topology
