// Thresholds at which a step over shared memory writes its results past the caches.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chorus::engine {

// From this size on, results would evict from the caches what is read next: of one range, and of all results that the
// ranks, which share the last-level cache, write in such a step.
inline constexpr std::uint64_t streams_from_bytes = 4u << 20;
inline constexpr std::uint64_t streams_from_bytes_of_all = 16u << 20;

// True for a step of this size, written to this many destinations by each rank.
[[nodiscard]] constexpr bool streams_results(std::uint64_t step_bytes, std::size_t destinations, std::uint32_t ranks) {
  return step_bytes >= streams_from_bytes || step_bytes * destinations * ranks >= streams_from_bytes_of_all;
}

// For other steps: neither way is faster everywhere, so ResultStores tries both.
inline constexpr std::uint64_t written_bytes_min = 64u << 10;
inline constexpr std::uint64_t bytes_worth_a_trial = 4096;
[[nodiscard]] constexpr bool depends_on_cores(std::uint64_t bytes, std::size_t destinations) {
  return destinations > 1 && bytes >= bytes_worth_a_trial && bytes * destinations >= written_bytes_min;
}

}  // namespace chorus::engine
