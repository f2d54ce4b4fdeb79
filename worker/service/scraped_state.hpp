// Converts the state of a worker's parts to metrics.
#pragma once

#include "metrics/worker_metrics.hpp"
#include "worker/devices/cuda/gpus.hpp"
#include "worker/engine/trace/peer_traffic.hpp"
#include "worker/tensors/memory.hpp"
#include "worker/tensors/residuals.hpp"

namespace chorus::service {

[[nodiscard]] metrics::LinkTraffic scraped(engine::PeerTraffic const& peer);
[[nodiscard]] metrics::GpuState scraped(devices::GpuUnit const& gpu);
[[nodiscard]] metrics::MemoryState scraped(tensors::PoolUse const& use, tensors::Residuals const& residuals);

}  // namespace chorus::service
