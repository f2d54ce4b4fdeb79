#include "worker/devices/nvml/gpu_report.hpp"

#include <algorithm>

namespace chorus::devices {

GpuReport report_gpus(std::span<GpuInfo const> used, std::string const& library) {
  GpuReport report;
  if (used.empty()) return report;
  std::vector<GpuLocality> known;
  if (auto said = ask_nvml(library); said.has_value()) {
    known = std::move(said->gpus);
    report.unknown = std::move(said->refused);
  } else {
    report.unknown.push_back(said.error().detail);
  }
  for (auto const& gpu : used) {
    auto const found = std::ranges::find(known, gpu.uuid, &GpuLocality::uuid);
    report.gpus.push_back(found != known.end() ? *found : GpuLocality{gpu.uuid, gpu.pci_address, gpu.name});
  }
  return report;
}

}  // namespace chorus::devices
