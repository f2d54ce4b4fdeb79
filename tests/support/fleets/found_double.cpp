// A program that links this file finds one GPU, a double: the same one in every process of the host. SIGUSR2 makes the
// GPU lost.
#include <atomic>
#include <csignal>

#include "worker/devices/cuda/gpu.hpp"
#include "worker/devices/cuda/testing/gpu_double.hpp"

namespace chorus::devices {
namespace {

std::atomic<bool> is_lost = false;

}  // namespace

FoundGpus find_gpus() {
  std::signal(SIGUSR2, [](int) { is_lost = true; });
  auto gpu = std::make_unique<testing::GpuDouble>();
  gpu->lost_when(is_lost);
  FoundGpus found;
  found.gpus.push_back(std::move(gpu));
  return found;
}

}  // namespace chorus::devices
