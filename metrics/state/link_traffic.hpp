// Counts of a worker's links with one peer, for the scrape.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace chorus::metrics {

// Traffic with one peer since the start of the process.
struct LinkTraffic {
  std::string peer;
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
  double send_busy_seconds = 0;
  double receive_busy_seconds = 0;
  std::uint32_t connections = 0;
  std::string link = "tcp";  // "shm", "tcp", or "none" while there is no connection

  std::uint64_t retries = 0;  // dials after the first one
  struct Errors {
    std::uint64_t unreachable = 0, closed = 0, refused = 0, malformed = 0, corrupt = 0;
  };
  Errors errors;

  // Times from a ping to its answer, in buckets of 10 us * 2^k; the last bucket is for all longer times.
  std::array<std::uint64_t, 17> round_trips{};
  double round_trip_seconds = 0;       // their sum
  double last_round_trip_seconds = 0;  // 0: none yet
};

}  // namespace chorus::metrics
