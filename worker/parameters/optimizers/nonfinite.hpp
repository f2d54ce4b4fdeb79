// Finds NaN and infinity in pushes: one fast pass over bits, without arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/core/dtype.hpp"

namespace chorus::parameters {

// Returns the number of elements that are NaN or infinite; 0 for integers. `bytes` are whole aligned elements.
[[nodiscard]] std::uint64_t count_nonfinite(Dtype dtype, std::span<std::byte const> bytes);

// Sets these elements to +0 and returns their number. Does not write to memory without any.
std::uint64_t zero_nonfinite(Dtype dtype, std::span<std::byte> bytes);

}  // namespace chorus::parameters
