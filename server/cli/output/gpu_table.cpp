#include "server/cli/output/gpu_table.hpp"

#include "server/cli/text/format.hpp"
#include "server/cli/text/units.hpp"

namespace chorus::cli {
namespace {

std::string rate_text(double gbyte_per_s) { return gbyte_per_s > 0 ? format_rate(gbyte_per_s * 1e9) : ""; }

std::string name_of(std::string const& pci_address, Locality const& at, std::vector<api::Worker> const& workers) {
  for (auto const& worker : workers)
    for (auto const& gpu : worker.gpus)
      if (worker.locality == at && gpu.pci_address == pci_address) return worker.id;
  return pci_address;
}

std::string nvlinks_text(GpuLocality const& gpu, Locality const& at, std::vector<api::Worker> const& workers) {
  std::vector<std::string> parts;
  auto to_switches = 0.0;
  for (auto const& links : gpu.nvlinks)
    if (links.is_switch)
      to_switches += links.gbyte_per_s;
    else
      parts.push_back(name_of(links.to, at, workers) + " " + rate_text(links.gbyte_per_s));
  if (to_switches > 0) parts.push_back("switches " + rate_text(to_switches));
  return join(parts, ", ");
}

}  // namespace

Table gpu_table(std::vector<api::Worker> const& workers) {
  Table table({{"WORKER"}, {"PCI ADDRESS"}, {"NAME"}, {"MEMORY", Align::right}, {"PCIE"}, {"NVLINKS"}});
  for (auto const& worker : workers)
    for (auto const& gpu : worker.gpus) {
      bool const has_pcie = gpu.pcie_generation > 0 && gpu.pcie_width > 0;
      table.add({worker.id, gpu.pci_address, gpu.name, rate_text(gpu.memory_gbyte_per_s),
                 has_pcie ? std::to_string(gpu.pcie_generation) + " x" + std::to_string(gpu.pcie_width) : "",
                 nvlinks_text(gpu, worker.locality, workers)});
    }
  return table;
}

}  // namespace chorus::cli
