// What workers say of their GPUs, held against what there can be.
#pragma once

#include <vector>

#include "collectives/core/gpu_locality.hpp"
#include "http/problem.hpp"

namespace chorus::coordinator {

inline constexpr std::size_t most_gpus = 64;        // of a worker
inline constexpr std::size_t most_neighbours = 64;  // of a GPU, to which it has NVLinks

// Adds what is wrong, with pointers from /gpus on.
void check_gpus(std::vector<GpuLocality> const& gpus, std::vector<http::FieldError>& errors);

}  // namespace chorus::coordinator
