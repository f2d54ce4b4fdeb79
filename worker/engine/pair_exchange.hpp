// A run that is nothing but an exchange: this rank sends one small message to a peer and receives one from it. It is
// what small calls of two ranks are, and when one is made again its frames are known before, both ways, but for the
// run's number and the payloads. So it is sent and taken as a whole, past what the general case needs (a third of the
// instructions; docs/performance.md).
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
  bool receives_after_sending = false;  // since it overwrites what is sent
  // The frames without the run's number; the sent message's open is its channel's.
  links::Parcel sent;
  links::FrameHeader expected_open;
  links::FrameHeader expected_data;
  links::OpenBytes expected_opening{};
  std::vector<FlightStep> steps;
  std::chrono::steady_clock::time_point sent_at;

  // Whether the peer of this exchange, number `run`, is to say exactly that.
  [[nodiscard]] bool expects(links::Parcel const& parcel, std::uint64_t run) const;
};

}  // namespace chorus::engine
