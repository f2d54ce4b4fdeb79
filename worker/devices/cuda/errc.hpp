// Errors of GPUs.
#pragma once

#include <system_error>

namespace chorus::devices {

enum class GpuErrc {
  unavailable = 1,  // no driver, no such device, or a build without CUDA
  out_of_memory,    // no device memory, or no pinned memory
  bad_handle,       // the handle's memory was freed, is not on this host, or cannot be mapped here
  failed,           // an operation failed; the device goes on working
  lost,             // the device has gone, or its context is corrupt: every later operation fails
};

[[nodiscard]] std::error_category const& gpu_category();
[[nodiscard]] inline std::error_code make_error_code(GpuErrc e) { return {static_cast<int>(e), gpu_category()}; }

}  // namespace chorus::devices

template <>
struct std::is_error_code_enum<chorus::devices::GpuErrc> : std::true_type {};
