// Programs of stories about GPUs: each of them finds a double of the same GPU. With CHORUS_TEST_GPU=real they are those
// that users run, on the GPUs of this host.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/cluster.hpp"

namespace chorus::testing {

inline bool on_real_gpu() {
  auto const* const which = std::getenv("CHORUS_TEST_GPU");
  return which != nullptr && std::string_view(which) == "real";
}

// For Cluster::add_worker.
inline std::string gpu_worker() { return on_real_gpu() ? "chorus-worker" : "worker_on_double"; }

// See tests/e2e/gpu_client.cpp.
inline std::string gpu_client() { return on_real_gpu() ? "gpu_client" : "gpu_client_on_double"; }

// A tensor of floats on a device of the worker: "cuda:0".
inline Answer put_on(Service const& worker, std::string const& device, std::string const& name,
                     std::vector<float> const& values) {
  httplib::Client client(worker.url);
  httplib::Headers const headers{
      {"Tensor-Dtype", "f32"}, {"Tensor-Shape", std::to_string(values.size())}, {"Tensor-Device", device}};
  std::string const bytes(reinterpret_cast<char const*>(values.data()), values.size() * sizeof(float));
  auto const answer = client.Put("/v1/tensors/" + name, headers, bytes, "application/octet-stream");
  if (!answer) throw std::runtime_error("PUT of " + name + ": no answer");
  return {answer->status, answer->body, answer->headers};
}

}  // namespace chorus::testing
