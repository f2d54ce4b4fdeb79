// A matrix that tests and documents agree on.
#pragma once

#include <vector>

#include "collectives/core/gpu_locality.hpp"
#include "collectives/topology/link_matrix.hpp"

namespace chorus::topology {

// The eight GPUs of a p3.16xlarge (DGX-1V): a hybrid cube mesh of NVLinks, two between some pairs (50 GB/s), one
// between others (25 GB/s), and PCI-E through the CPU (10 GB/s) between the rest. Every GPU has six NVLinks; the double
// ones alone form one ring, 0 3 2 1 5 6 7 4.
//
// Source: Apache MXNet, "Single machine All Reduce Topology-aware Communication", figure 3; the latencies, 0.6 us for
// NVLink and 1.0 us for PCI-E, are those of NCCL's tuning tables (tree, LL).
[[nodiscard]] LinkMatrix dgx1_matrix();

// The same GPUs as a worker of such a host reports them: V100 with memory of 898 GB/s.
[[nodiscard]] std::vector<GpuLocality> dgx1_gpus();

}  // namespace chorus::topology
