// Asks NVIDIA's management library (NVML) for the host's GPUs and their links.
#pragma once

#include <string>
#include <system_error>
#include <vector>

#include "collectives/core/gpu_locality.hpp"
#include "collectives/core/result.hpp"

namespace chorus::devices {

enum class NvmlErrc {
  no_library = 1,  // no library of this name: there is no driver
  no_nvml,         // the library is not NVML, or is too old
  refused,         // NVML failed to start: the driver does not run, or is of another release
};

[[nodiscard]] std::error_category const& nvml_category();
[[nodiscard]] inline std::error_code make_error_code(NvmlErrc e) { return {static_cast<int>(e), nvml_category()}; }

inline constexpr char const* nvml_library = "libnvidia-ml.so.1";

struct NvmlReport {
  std::vector<GpuLocality> gpus;     // in the driver's order; unknown values are left out, never guessed
  std::vector<std::string> refused;  // one line for each call that failed, except for features that a device lacks
};

// Loads the library, asks for every GPU that this process may use, and unloads the library. Takes some tens of
// milliseconds if there is a driver.
[[nodiscard]] Result<NvmlReport> ask_nvml(std::string const& library = nvml_library);

}  // namespace chorus::devices

template <>
struct std::is_error_code_enum<chorus::devices::NvmlErrc> : std::true_type {};
