// Programs of stories about GPUs: each of them finds a double of the same GPU. With CHORUS_TEST_GPU=real they are those
// that users run, on the GPUs of this host.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

namespace chorus::testing {

inline bool on_real_gpu() {
  auto const* const which = std::getenv("CHORUS_TEST_GPU");
  return which != nullptr && std::string_view(which) == "real";
}

// For Cluster::add_worker.
inline std::string gpu_worker() { return on_real_gpu() ? "chorus-worker" : "worker_on_double"; }

// See tests/e2e/gpu_client.cpp.
inline std::string gpu_client() { return on_real_gpu() ? "gpu_client" : "gpu_client_on_double"; }

}  // namespace chorus::testing
