// What NVIDIA's management library says of the host's GPUs: which there are, and what they are wired to.
#pragma once

#include <string>
#include <system_error>
#include <vector>

#include "collectives/core/gpu_locality.hpp"
#include "collectives/core/result.hpp"

namespace chorus::devices {

enum class NvmlErrc {
  no_library = 1,  // of this name: there is no driver
  no_nvml,         // a library of this name is something else, or too old
  refused,         // it says that it cannot: the driver does not run, or is not of its release
};

[[nodiscard]] std::error_category const& nvml_category();
[[nodiscard]] inline std::error_code make_error_code(NvmlErrc e) { return {static_cast<int>(e), nvml_category()}; }

inline constexpr char const* nvml_library = "libnvidia-ml.so.1";

struct NvmlReport {
  std::vector<GpuLocality> gpus;     // in the driver's order; what it did not say is missing, and nothing is guessed
  std::vector<std::string> refused;  // one line for each call that failed, but for what a device cannot have
};

// Loads the library, asks and unloads it: some tens of milliseconds where there is a driver. Of every GPU that this
// process may see.
[[nodiscard]] Result<NvmlReport> ask_nvml(std::string const& library = nvml_library);

}  // namespace chorus::devices

template <>
struct std::is_error_code_enum<chorus::devices::NvmlErrc> : std::true_type {};
