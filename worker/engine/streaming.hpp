// When a step over shared memory writes its results past the caches.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chorus::engine {

// From here on results would throw out of the caches what is read next. Of one range; and of all that all ranks, who
// share the last cache, write in a step like this one.
inline constexpr std::uint64_t streams_from_bytes = 4u << 20;
inline constexpr std::uint64_t streams_from_bytes_of_all = 16u << 20;

// Of a step of so many bytes, written to so many destinations by each of the ranks.
[[nodiscard]] constexpr bool streams_results(std::uint64_t step_bytes, std::size_t destinations, std::uint32_t ranks) {
  return step_bytes >= streams_from_bytes || step_bytes * destinations * ranks >= streams_from_bytes_of_all;
}

// Where it does not, and neither way is the faster one everywhere, for a part of a step: see ResultStores.
inline constexpr std::uint64_t written_bytes_min = 64u << 10;
inline constexpr std::uint64_t bytes_worth_a_trial = 4096;
[[nodiscard]] constexpr bool depends_on_cores(std::uint64_t bytes, std::size_t destinations) {
  return destinations > 1 && bytes >= bytes_worth_a_trial && bytes * destinations >= written_bytes_min;
}

}  // namespace chorus::engine
