// What a worker says of one of its GPUs.
#pragma once

#include <cstdint>
#include <string>

namespace chorus::metrics {

struct GpuState {
  std::string device;  // "cuda:0"
  bool is_lost = false;
  // Since the worker has begun; times as the device measured them.
  std::uint64_t in_bytes = 0, out_bytes = 0;  // between the host's memory and its own
  std::uint64_t peer_bytes = 0;               // read or written in the GPU memory of other workers
  std::uint64_t nccl_bytes = 0;               // that NCCL added or passed on
  std::uint64_t stepped_bytes = 0;            // of gradients
  std::uint64_t kernels = 0;
  double in_seconds = 0, compute_seconds = 0, out_seconds = 0;
  // Now.
  std::uint64_t arena_bytes = 0, arena_used_bytes = 0;
  std::uint64_t pinned_bytes = 0, pinned_limit_bytes = 0;
};

}  // namespace chorus::metrics
