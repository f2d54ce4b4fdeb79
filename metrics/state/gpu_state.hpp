// Counts and state of one of a worker's GPUs, for the scrape.
#pragma once

#include <cstdint>
#include <string>

namespace chorus::metrics {

struct GpuState {
  std::string device;  // "cuda:0"
  bool is_lost = false;
  // Since the worker's start; the device measured the times.
  std::uint64_t in_bytes = 0, out_bytes = 0;  // copied from and to the host's memory
  std::uint64_t peer_bytes = 0;               // read or written in the GPU memory of other workers
  std::uint64_t nccl_bytes = 0;               // reduced or copied by NCCL
  std::uint64_t stepped_bytes = 0;            // gradients in optimizer steps
  std::uint64_t kernels = 0;
  double in_seconds = 0, compute_seconds = 0, out_seconds = 0;
  // Now.
  std::uint64_t arena_bytes = 0, arena_used_bytes = 0;
  std::uint64_t pinned_bytes = 0, pinned_limit_bytes = 0;
};

}  // namespace chorus::metrics
