// Bus bandwidth as nccl-tests defines it, so that figures of different rank counts and operations can be compared.
#pragma once

#include <cstdint>

#include "collectives/core/op.hpp"

namespace chorus::metrics {

// Times payload / seconds. The payload is the whole vector: of one rank for all_reduce, reduce and broadcast, of all
// ranks together for the others. 0 for a barrier and for one rank.
[[nodiscard]] double bus_factor(Op op, std::uint32_t ranks);

}  // namespace chorus::metrics
