// Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011): random bits as a
// function of a counter and a key, so that any element can be drawn without the elements before it.
#pragma once

#include <array>
#include <cstdint>

namespace chorus::parameters {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

[[nodiscard]] PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key);

}  // namespace chorus::parameters
