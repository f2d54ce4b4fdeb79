// Checks workers' reports of their GPUs for plausibility.
#pragma once

#include <vector>

#include "collectives/core/gpu_locality.hpp"
#include "http/json/problem.hpp"

namespace chorus::coordinator {

inline constexpr std::size_t most_gpus = 64;        // per worker
inline constexpr std::size_t most_neighbours = 64;  // GPUs to which one GPU has NVLinks

// Adds the errors, with pointers below /gpus.
void check_gpus(std::vector<GpuLocality> const& gpus, std::vector<http::FieldError>& errors);

}  // namespace chorus::coordinator
