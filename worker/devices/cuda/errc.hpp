// How a GPU can fail.
#pragma once

#include <system_error>

namespace chorus::devices {

enum class GpuErrc {
  unavailable = 1,  // no driver, no such device, or a build without CUDA
  out_of_memory,    // of the device, or of the memory that is pinned
  bad_handle,       // of another process's memory: freed, not of this host, or not to be mapped here
  failed,           // an operation; the device works on
  lost,             // the device has gone, or its context is corrupt: nothing works there any more
};

[[nodiscard]] std::error_category const& gpu_category();
[[nodiscard]] inline std::error_code make_error_code(GpuErrc e) { return {static_cast<int>(e), gpu_category()}; }

}  // namespace chorus::devices

template <>
struct std::is_error_code_enum<chorus::devices::GpuErrc> : std::true_type {};
