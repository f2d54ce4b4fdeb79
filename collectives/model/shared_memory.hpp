// Which all_reduce fits callers that read each other's memory where it lies.
#pragma once

#include <cstdint>
#include <string_view>

namespace chorus::model {

// A rank of `mesh` reads all p vectors in one pass and waits once; a rank of `allpairs` reads a p-th of each and writes
// the sum to all of them, so it moves p / 2 times fewer bytes and waits twice. The model of links prices neither:
// nothing is sent. Measured with 2, 4 and 8 ranks on two cores, the two cross where p^2 n is 0.5 to 2 MiB, as the
// processor has it.
[[nodiscard]] std::string_view shared_memory_all_reduce(std::uint32_t ranks, std::uint64_t bytes);

}  // namespace chorus::model
