// Bus bandwidth as nccl-tests defines it, so that figures of different rank counts and operations can be compared.
#pragma once

#include <cstdint>

#include "collectives/core/op.hpp"

namespace chorus::metrics {

// Returns the factor by which payload / seconds is multiplied to get the bus bandwidth. The payload is one rank's
// vector for all_reduce, reduce and broadcast, and all ranks' vectors for the other operations. 0 for a barrier and for
// one rank.
[[nodiscard]] double bus_factor(Op op, std::uint32_t ranks);

}  // namespace chorus::metrics
