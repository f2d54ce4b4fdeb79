// A run over all ranks as a Chrome trace: what chrome://tracing and Perfetto show. docs/flight.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "http/api/collectives.hpp"
#include "http/api/flight.hpp"

namespace chorus::coordinator {

// What a worker's clock says of ours: ours = its + offset, give or take the error. From the exchange of least duration:
// its reading was made somewhere between our two, so its middle is off by half of it at most (as NTP has it).
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
  std::string why;  // there is no flight
};

// {"traceEvents":[...],"displayTimeUnit":"ms","metadata":{...}}: a process per rank; in it the run, and rows of
// instructions, each as long as it was under way, with the part in which it waited for its peer; arrows from sends to
// receives. Times are microseconds since the first rank began.
[[nodiscard]] std::string chrome_trace(api::Collective const& collective, std::vector<RankTrace> const& ranks);

}  // namespace chorus::coordinator
