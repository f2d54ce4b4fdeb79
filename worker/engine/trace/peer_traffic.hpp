// Counters of the traffic between this worker and one peer.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace chorus::engine {

// Traffic with one peer since the start of the process, for metrics.
struct PeerTraffic {
  std::string worker;
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
  double send_busy_seconds = 0;     // time with something queued to the peer
  double receive_busy_seconds = 0;  // time between the first and last byte of payloads
  std::uint32_t connections = 0;
  std::string link;  // kind: "shm", "tcp", "tls", "shm and tcp" while the directions differ, empty without connections
  std::string why_not_shm;          // one line, if shared memory was tried and is not used
  std::string why_not_ipc;          // one line, if memory of GPUs was lent and is not read in place
  std::uint64_t dials = 0;          // connections that this worker opened or tried to open
  struct Ends {                     // ends of connections, except by a stop of this worker
    std::uint64_t unreachable = 0;  // no connection came about
    std::uint64_t closed = 0;       // by the peer, or by something in between
    std::uint64_t refused = 0;      // by the peer, or because the connection was replaced
    std::uint64_t malformed = 0;    // a frame was not understood
    std::uint64_t corrupt = 0;      // a frame was changed on the way; found here or by the peer
  };
  Ends ends;
  // Histogram of the time from an ask to its answer: bucket k counts times up to 10 us * 2^k, the last bucket all
  // longer ones.
  std::array<std::uint64_t, 17> round_trips{};
  double round_trip_seconds = 0;       // their sum
  double last_round_trip_seconds = 0;  // 0: none yet
};

}  // namespace chorus::engine
