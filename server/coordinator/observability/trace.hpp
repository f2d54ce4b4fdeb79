// Shows a run over all ranks as a Chrome trace, for chrome://tracing and Perfetto. See docs/guides/diagnosis.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "http/api/collectives/collectives.hpp"
#include "http/api/collectives/flight.hpp"

namespace chorus::coordinator {

// Offset of a worker's clock: ours = worker's + offset, within the error. It comes from the exchange of least duration:
// the worker read its clock between our two readings, so the middle is wrong by at most half the duration (as in NTP).
struct ClockOffset {
  double offset_us = 0;
  double error_us = 0;
};
[[nodiscard]] ClockOffset offset_of(double asked_us, double answered_us, double its_us);

struct RankTrace {
  std::uint32_t rank = 0;
  std::string worker;
  std::optional<api::Flight> flight;
  ClockOffset clock;
  std::string why;  // reason if there is no flight
};

// Returns {"traceEvents":[...],"displayTimeUnit":"ms","metadata":{...}}. Every rank is a process with one row for the
// run and rows of instructions. An instruction spans its whole duration, including its wait for the peer; arrows lead
// from sends to receives. Times are microseconds since the first rank began.
[[nodiscard]] std::string chrome_trace(api::Collective const& collective, std::vector<RankTrace> const& ranks);

}  // namespace chorus::coordinator
