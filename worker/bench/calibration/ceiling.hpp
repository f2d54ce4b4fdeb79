// What this machine's TCP can do without Chorus, for comparison.
#pragma once

#include <cstdint>

#include "collectives/core/result.hpp"

namespace chorus::bench {

struct Ceiling {
  double round_trip_us = 0;   // median, one byte each way, blocking reads
  double one_way_GBps = 0;    // one connection, one direction
  double both_ways_GBps = 0;  // one process at each end, each with one thread per direction; per direction
};

// Two processes on 127.0.0.1. Errors: the system's.
[[nodiscard]] Result<Ceiling> measure_ceiling(std::uint64_t segment_bytes);

}  // namespace chorus::bench
