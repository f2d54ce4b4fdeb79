// Where a GPU of a worker stands, and what it is wired to. Reported by the worker.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chorus {

// All NVLinks from a GPU to one other device of the host.
struct Nvlinks {
  std::string to;           // its PCI address
  bool is_switch = false;   // an NVSwitch, and not a GPU
  std::uint32_t links = 0;  // that are active
  double gbyte_per_s = 0;   // of all of them together, in one direction; 1 GB is 10^9 bytes
  friend bool operator==(Nvlinks const&, Nvlinks const&) = default;
};

struct GpuLocality {
  std::string uuid;         // "GPU-8e7d2b3c-...": the same GPU has it in every process
  std::string pci_address;  // "0000:17:00.0"
  std::string name;
  double memory_gbyte_per_s = 0;                      // reading and writing together; 0: not known
  std::uint32_t pcie_generation = 0, pcie_width = 0;  // the most that device and slot can do; 0: not known
  std::vector<Nvlinks> nvlinks;                       // one per device
  friend bool operator==(GpuLocality const&, GpuLocality const&) = default;
};

// "GPU-" and 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12.
[[nodiscard]] bool is_gpu_uuid(std::string_view text);
// Domain, bus, device and function in hexadecimal digits of lower case: 4 to 8, 2, 2 and 1 of them.
[[nodiscard]] bool is_pci_address(std::string_view text);

}  // namespace chorus
