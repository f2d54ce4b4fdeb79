// How long a request waits for the end of a collective.
#pragma once

#include <algorithm>
#include <chrono>

namespace chorus::cli {

inline constexpr std::chrono::milliseconds longest_wait{600'000};  // limit of the coordinator
inline constexpr std::chrono::milliseconds answer_slack{10'000};   // extra time of an answer beyond the requested wait

// The coordinator ends a collective shortly after its deadline, when the survivors have reported the awaited ranks.
[[nodiscard]] inline std::chrono::milliseconds wait_for_the_end(std::chrono::milliseconds timeout) {
  constexpr std::chrono::milliseconds ending_slack{5'000};
  return std::min<std::chrono::milliseconds>(timeout + ending_slack, longest_wait);
}

}  // namespace chorus::cli
