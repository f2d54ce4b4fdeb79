// Programs of GPU tests: each of them finds a double of the same GPU. With CHORUS_TEST_GPU=real they are the programs
// that users run, on the GPUs of this host.
#pragma once

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/fleets/cluster.hpp"

namespace chorus::testing {

inline bool on_real_gpu() {
  auto const* const which = std::getenv("CHORUS_TEST_GPU");
  return which != nullptr && std::string_view(which) == "real";
}

// Returns the program for Cluster::add_worker.
inline std::string gpu_worker() { return on_real_gpu() ? "chorus-worker" : "worker_on_double"; }

// Returns the client program, see tests/e2e/gpu_client.cpp.
inline std::string gpu_client() { return on_real_gpu() ? "gpu_client" : "gpu_client_on_double"; }

// Text in the error about a GPU that lose_gpu() has taken away.
inline std::string lost_gpu_reason() { return on_real_gpu() ? "cudaErrorMps" : "the double was lost"; }

// Makes all following calls of the worker to its GPU fail; no other process notices. A double gets a signal. A worker
// on a real GPU must be a client of CUDA's multi-process service, whose control can end clients (tests/bench/gpu/run
// starts one). Throws std::runtime_error if there is no such service.
inline void lose_gpu(Service const& worker) {
  if (!on_real_gpu()) return worker.process.signal(SIGUSR2);
  auto const ask = [](std::string const& command) {
    return Process({"/bin/sh", "-c", "echo " + command + " | nvidia-cuda-mps-control"}).read_all();
  };
  auto server = ask("get_server_list");
  server.erase(server.find_last_not_of(" \n") + 1);
  if (server.empty() || server.find_first_not_of("0123456789") != std::string::npos)
    throw std::runtime_error("no server of MPS: " + server);
  ask("terminate_client " + server + " " + std::to_string(worker.process.pid()));
}

// Puts a tensor of floats on a device of the worker, such as "cuda:0".
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
