// The table of the workers' GPUs and their NVLinks.
#pragma once

#include <vector>

#include "http/api/cluster/membership.hpp"
#include "server/cli/output/table.hpp"

namespace chorus::cli {

// Makes one row per GPU of each worker. The GPU at the other end of NVLinks is named by a worker of the host that uses
// it, or by its PCI address; all switches count as one.
[[nodiscard]] Table gpu_table(std::vector<api::Worker> const& workers);

}  // namespace chorus::cli
