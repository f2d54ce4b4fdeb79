// Identity of a worker's GPU, its place on the host and its links to other devices. The worker reports it at its join.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chorus {

// All NVLinks from a GPU to one other device of the host.
struct Nvlinks {
  std::string to;           // PCI address of the device
  bool is_switch = false;   // an NVSwitch, and not a GPU
  std::uint32_t links = 0;  // number of active links
  double gbyte_per_s = 0;   // of all links together, in one direction; 1 GB is 10^9 bytes
  friend bool operator==(Nvlinks const&, Nvlinks const&) = default;
};

struct GpuLocality {
  std::string uuid;         // "GPU-8e7d2b3c-...", the same in every process
  std::string pci_address;  // "0000:17:00.0"
  std::string name;
  double memory_gbyte_per_s = 0;                      // reads and writes together; 0: unknown
  std::uint32_t pcie_generation = 0, pcie_width = 0;  // the most that device and slot support; 0: unknown
  std::vector<Nvlinks> nvlinks;                       // one per device
  friend bool operator==(GpuLocality const&, GpuLocality const&) = default;
};

// Returns true for "GPU-" and 32 lower-case hexadecimal digits in groups of 8, 4, 4, 4 and 12.
[[nodiscard]] bool is_gpu_uuid(std::string_view text);
// Returns true for domain, bus, device and function, "0000:17:00.0": 4 to 8, 2, 2 and 1 lower-case hexadecimal digits.
[[nodiscard]] bool is_pci_address(std::string_view text);

}  // namespace chorus
