// The best all_reduce of callers that read each other's memory in place.
#pragma once

#include <cstdint>
#include <string_view>

namespace chorus::model {

// Returns the name of the algorithm, `mesh` or `allpairs`. A rank of `mesh` reads all p vectors in one pass and waits
// once; a rank of `allpairs` reads a p-th of each and writes the sum to all of them, so it moves p / 2 times fewer
// bytes and waits twice. The point at which `allpairs` becomes faster depends on p^2 n, with one last-level cache and
// with several, because `allpairs` bypasses caches that are slow to write to
// (worker/engine/shm/calls/result_stores.hpp). The model of links cannot price these algorithms, as no message is sent.
//
// In place `mesh` may write only when all others have read, and adds up in other memory: it is faster only for payloads
// inside of messages. `allpairs` writes to the memory that it has read.
//
// Measurements: docs/explanation/performance.md.
[[nodiscard]] std::string_view shared_memory_all_reduce(std::uint32_t ranks, std::uint64_t bytes, bool in_place);

}  // namespace chorus::model
