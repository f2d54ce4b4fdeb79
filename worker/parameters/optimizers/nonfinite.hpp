// NaN and infinity in what clients push: one fast pass that reads bits and does no arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/core/dtype.hpp"

namespace chorus::parameters {

// How many elements are NaN or infinite; integers are never. `bytes` are whole elements, aligned to them.
[[nodiscard]] std::uint64_t count_nonfinite(Dtype dtype, std::span<std::byte const> bytes);

// Makes them +0, and returns how many they were. Memory without any is only read.
std::uint64_t zero_nonfinite(Dtype dtype, std::span<std::byte> bytes);

}  // namespace chorus::parameters
