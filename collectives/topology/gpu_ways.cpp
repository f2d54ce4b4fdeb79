#include "collectives/topology/gpu_ways.hpp"

#include <algorithm>
#include <map>

#include "collectives/core/assert.hpp"
#include "collectives/topology/locality_groups.hpp"

namespace chorus::topology {
namespace {

double to_gpu(GpuLocality const& gpu, std::string const& pci_address) {
  auto rate = 0.0;
  for (auto const& link : gpu.nvlinks)
    if (!link.is_switch && link.to == pci_address) rate += link.gbyte_per_s;
  return rate;
}

double to_switches(GpuLocality const& gpu) {
  auto rate = 0.0;
  for (auto const& link : gpu.nvlinks)
    if (link.is_switch) rate += link.gbyte_per_s;
  return rate;
}

std::optional<double> slowest_between(std::vector<GpuLocality> const& ours, std::vector<GpuLocality> const& theirs) {
  std::optional<double> slowest;
  for (auto const& a : ours)
    for (auto const& b : theirs) {
      auto const rate = gbyte_per_s_between(a, b);
      if (!rate) return std::nullopt;
      slowest = std::min(*rate, slowest.value_or(*rate));
    }
  return slowest;
}

}  // namespace

std::optional<double> gbyte_per_s_between(GpuLocality const& a, GpuLocality const& b) {
  auto const rate = a.uuid == b.uuid ? std::min(a.memory_gbyte_per_s, b.memory_gbyte_per_s) / 2
                                     : std::min(to_gpu(a, b.pci_address), to_gpu(b, a.pci_address)) +
                                           std::min(to_switches(a), to_switches(b));
  if (!(rate > 0)) return std::nullopt;
  return rate;
}

std::vector<GpuWay> gpu_ways(std::span<Locality const> localities, std::span<std::vector<GpuLocality> const> gpus) {
  CHORUS_ASSERT(localities.size() == gpus.size(), "every worker has a place, and GPUs or none");
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_host;
  auto const groups = locality_groups(localities);
  for (std::uint32_t worker = 0; worker < groups.size(); ++worker)
    if (!gpus[worker].empty()) by_host[groups[worker].back()].push_back(worker);
  std::vector<GpuWay> ways;
  for (auto const& [host, workers] : by_host)
    for (std::size_t i = 0; i < workers.size(); ++i)
      for (auto j = i + 1; j < workers.size(); ++j)
        if (auto const rate = slowest_between(gpus[workers[i]], gpus[workers[j]]))
          ways.push_back({workers[i], workers[j], *rate});
  return ways;
}

}  // namespace chorus::topology
