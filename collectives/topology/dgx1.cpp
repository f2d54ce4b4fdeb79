#include "collectives/topology/dgx1.hpp"

#include <array>
#include <cstdint>
#include <string>

namespace chorus::topology {
namespace {

constexpr std::array<std::array<std::uint32_t, 8>, 8> lanes{{
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

std::string digit(std::size_t gpu) { return std::string(1, static_cast<char>('0' + gpu)); }

std::string address(std::size_t gpu) { return "0000:00:1" + std::string(1, "789abcde"[gpu]) + ".0"; }

}  // namespace

LinkMatrix dgx1_matrix() {
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

std::vector<GpuLocality> dgx1_gpus() {
  std::vector<GpuLocality> gpus;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    GpuLocality gpu{"GPU-00000000-0000-0000-0000-00000000000" + digit(i), address(i), "Tesla V100-SXM2-16GB"};
    gpu.memory_gbyte_per_s = 2e-3 * 877 * 4096 / 8;  // both edges of 877 MHz, 4096 bits
    gpu.pcie_generation = 3;
    gpu.pcie_width = 16;
    for (std::size_t peer = 0; peer < lanes.size(); ++peer)
      if (auto const count = lanes[i][peer]; count > 0)
        gpu.nvlinks.push_back({address(peer), false, count, 25.0 * count});
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

}  // namespace chorus::topology
