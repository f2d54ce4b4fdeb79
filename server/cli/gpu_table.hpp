// The workers' GPUs, and what they are wired to.
#pragma once

#include <vector>

#include "http/api/membership.hpp"
#include "server/cli/table.hpp"

namespace chorus::cli {

// A row per GPU of each worker. A GPU at the other end of NVLinks is named by a worker of the host that uses it, or by
// its PCI address; switches are one.
[[nodiscard]] Table gpu_table(std::vector<api::Worker> const& workers);

}  // namespace chorus::cli
