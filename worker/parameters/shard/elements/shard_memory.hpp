// Where the arrays of shards are: in host memory, or on a GPU of the worker.
#pragma once

#include "collectives/core/result.hpp"
#include "http/json/problem.hpp"
#include "worker/devices/cuda/gpus.hpp"
#include "worker/tensors/memory.hpp"

namespace chorus::parameters {

// The memory for shards' arrays. Pool and GPUs outlive the shards.
struct ShardMemory {
  // Implicit, because most shards need host memory only.
  ShardMemory(tensors::Pool& host, devices::Gpus const* all = nullptr) : pool(host), gpus(all) {}

  // Returns the GPU with the most free memory. Errors: GpuErrc::unavailable, lost.
  [[nodiscard]] Result<devices::GpuUnit*> roomiest_gpu() const;

  tensors::Pool& pool;
  devices::Gpus const* gpus;  // null: none
};

// Converts an error of Shard::make to a problem: unsupported without a working GPU; otherwise unavailable.
[[nodiscard]] http::Problem why_not_made(Error const& error);

}  // namespace chorus::parameters
