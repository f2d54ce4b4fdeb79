// Sizes of collectives that send codes of their elements: see WireFormat. The block of each rank is encoded by itself.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/core/op.hpp"
#include "collectives/core/wire_format.hpp"
#include "collectives/plan/sizes.hpp"

namespace chorus::plan {

// Returns the elements of each rank's block; nothing for operations without blocks. Not for all_to_all with counts.
[[nodiscard]] std::vector<std::uint64_t> blocks_of(Op op, std::uint32_t ranks, Sizes const& sizes);

// Returns the number of elements of the carrier for the whole vector.
[[nodiscard]] std::uint64_t carriers_of(WireFormat format, Op op, std::uint32_t ranks, Sizes const& sizes);

}  // namespace chorus::plan
