#include "server/coordinator/membership/gpu_reports.hpp"

#include <set>
#include <string_view>

#include "collectives/topology/link.hpp"
#include "server/coordinator/text/identifier.hpp"

namespace chorus::coordinator {
namespace {

constexpr std::uint32_t most_links = 1024;  // between two GPUs
constexpr std::uint32_t latest_pcie = 32, widest_pcie = 32;

bool is_rate(double gbyte_per_s) { return topology::check({0, gbyte_per_s}, {}).has_value(); }

class GpuCheck {
 public:
  GpuCheck(std::string at, std::vector<http::FieldError>& errors) : at_(std::move(at)), errors_(errors) {}

  void operator()(GpuLocality const& gpu) const {
    require(is_gpu_uuid(gpu.uuid), "/uuid",
            "expected GPU- and 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12, of lower case");
    require(is_pci_address(gpu.pci_address), "/pci_address", address_form);
    require(is_showable(gpu.name, 96), "/name", "expected at most 96 bytes without control characters");
    require(gpu.memory_gbyte_per_s == 0 || is_rate(gpu.memory_gbyte_per_s), "/memory_gbyte_per_s",
            "expected 1e-9 to 1e6, or 0 where it is not known");
    require(gpu.pcie_generation <= latest_pcie, "/pcie_generation", "expected at most 32, or 0 where it is not known");
    require(gpu.pcie_width <= widest_pcie, "/pcie_width", "expected at most 32, or 0 where it is not known");
    if (gpu.nvlinks.size() > most_neighbours)
      return require(false, "/nvlinks", std::to_string(gpu.nvlinks.size()) + " devices; expected at most 64");
    std::set<std::string_view> seen{gpu.pci_address};
    for (std::size_t i = 0; i < gpu.nvlinks.size(); ++i) {
      auto const& links = gpu.nvlinks[i];
      auto const at = "/nvlinks/" + std::to_string(i);
      require(is_pci_address(links.to), at + "/to", address_form);
      require(seen.insert(links.to).second, at + "/to", "is the GPU itself, or there twice");
      require(links.links >= 1 && links.links <= most_links, at + "/links", "expected 1 to 1024");
      require(is_rate(links.gbyte_per_s), at + "/gbyte_per_s", "expected 1e-9 to 1e6");
    }
  }

 private:
  static constexpr char const* address_form = "expected a PCI address such as 0000:17:00.0, of lower case";

  void require(bool holds, std::string const& field, std::string expected) const {
    if (!holds) errors_.push_back({at_ + field, std::move(expected)});
  }

  std::string const at_;
  std::vector<http::FieldError>& errors_;
};

}  // namespace

void check_gpus(std::vector<GpuLocality> const& gpus, std::vector<http::FieldError>& errors) {
  if (gpus.size() > most_gpus) {
    errors.push_back({"/gpus", std::to_string(gpus.size()) + " GPUs; expected at most 64"});
    return;
  }
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    auto const at = "/gpus/" + std::to_string(i);
    GpuCheck(at, errors)(gpus[i]);
    if (!seen.insert(gpus[i].uuid).second) errors.push_back({at + "/uuid", "is there twice"});
  }
}

}  // namespace chorus::coordinator
