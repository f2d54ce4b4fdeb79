// A run that is one exchange: this rank sends one small message, which is ready at the start, to a peer, and receives
// one from the same peer. Small calls of two ranks and of the leaves of trees are of this kind. When such a call is
// repeated, both frames are known in advance except for run number and payload. So each is sent and accepted as a
// whole, and then the rest of the program is executed one instruction after the other, without the machinery of the
// general case (docs/explanation/performance.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/engine/trace/timeline.hpp"
#include "worker/links/link.hpp"

namespace chorus::engine {

// Owns its frames. The open of `sent` belongs to the send channel.
struct PairExchange {
  // Numbers of the two instructions.
  std::uint32_t send = 0;
  std::uint32_t receive = 0;
  // Frames without the run number.
  links::CoalescedFrame sent;
  links::FrameHeader expected_open;
  links::FrameHeader expected_data;
  links::OpenBytes expected_opening{};
  std::vector<FlightStep> steps;  // one per instruction
  std::chrono::steady_clock::time_point sent_at;

  // True if the frame is exactly what the peer of this exchange sends in run `run`.
  [[nodiscard]] bool expects(links::CoalescedFrame const& coalesced_frame, std::uint64_t run) const;
};

}  // namespace chorus::engine
