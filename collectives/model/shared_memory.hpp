// The best all_reduce for callers that read each other's memory in place.
#pragma once

#include <cstdint>
#include <string_view>

namespace chorus::model {

// A rank of `mesh` reads all p vectors in one pass and waits once; a rank of `allpairs` reads a p-th of each and writes
// the sum to all of them, so it moves p / 2 times fewer bytes and waits twice. The two cross where p^2 n is 2 to 4 MiB,
// with one last-level cache and with several, because `allpairs` bypasses caches that are slow to write to
// (worker/engine/shm/result_stores.hpp). The model of links prices neither: nothing is sent.
// In place `mesh` may write only when all others have read, and adds up in other memory: it pays only for payloads
// inside of messages. `allpairs` writes where it has read, which makes it faster.
// inside of messages alone. `allpairs` writes where it has read, and is the faster for it.
//
// Measured with 2, 4 and 8 ranks on two cores: docs/explanation/performance.md.
[[nodiscard]] std::string_view shared_memory_all_reduce(std::uint32_t ranks, std::uint64_t bytes, bool in_place);

}  // namespace chorus::model
