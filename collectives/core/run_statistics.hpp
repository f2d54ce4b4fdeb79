// What one rank's run did, and how long it took: made by the engine, and passed on as it is to metrics, flight recorder
// and reports.
#pragma once

#include <chrono>
#include <cstdint>

namespace chorus {

// Bytes that were combined into other operands in timed pieces, and the time that took.
struct Reduced {
  std::uint64_t bytes = 0;
  double seconds = 0;
};

struct RunStatistics {
  std::chrono::steady_clock::duration duration{0};
  double wait_seconds = 0;  // in which no instruction waited for anything but a peer; 0 for calls over shared memory
  std::uint64_t bytes_sent = 0;  // payload
  std::uint64_t bytes_received = 0;
  std::uint32_t steps = 0;  // instructions completed
  Reduced reduced;          // by the CPU

  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(duration).count(); }

  // Of runs one after the other.
  RunStatistics& operator+=(RunStatistics const& next) {
    duration += next.duration;
    wait_seconds += next.wait_seconds;
    bytes_sent += next.bytes_sent;
    bytes_received += next.bytes_received;
    steps += next.steps;
    reduced.bytes += next.reduced.bytes;
    reduced.seconds += next.reduced.seconds;
    return *this;
  }
};

}  // namespace chorus
