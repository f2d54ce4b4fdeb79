// A run that is nothing but an exchange: this rank sends one small message to a peer, which it has from the beginning,
// and receives one from the same peer. Small calls of two ranks are that, and those of a leaf of any tree; and when one
// is made again its frames are known before, both ways, but for the run's number and the payloads. So it is sent and
// taken as a whole, and what else its program does is done then, one instruction after the other: past all that the
// general case needs (docs/performance.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/engine/timeline.hpp"
#include "worker/links/link.hpp"

namespace chorus::engine {

// A value.
struct PairExchange {
  // Instructions.
  std::uint32_t send = 0;
  std::uint32_t receive = 0;
  // The frames without the run's number; the sent message's open is its channel's.
  links::Parcel sent;
  links::FrameHeader expected_open;
  links::FrameHeader expected_data;
  links::OpenBytes expected_opening{};
  std::vector<FlightStep> steps;  // one for each instruction
  std::chrono::steady_clock::time_point sent_at;

  // Whether the peer of this exchange, number `run`, is to say exactly that.
  [[nodiscard]] bool expects(links::Parcel const& parcel, std::uint64_t run) const;
};

}  // namespace chorus::engine
