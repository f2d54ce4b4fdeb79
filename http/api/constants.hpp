// The cost model's constants as a message and as a file: what `chorus-bench --calibrate` writes, and everything that
// chooses algorithms can be given. What is absent keeps the value that it had.
#pragma once

#include <cstdint>
#include <optional>

namespace chorus::api {

struct LinkConstants {
  double alpha_s = 0;          // latency of a message
  double beta_s_per_byte = 0;  // inverse bandwidth
};

// Of the link of two ranks whose smallest common place this is.
struct LevelConstants {
  std::optional<LinkConstants> host, rack, zone, region, world;
};

// Inverse bandwidth of what all ranks of a place share towards the others; 0: no limit.
struct UplinkConstants {
  std::optional<double> host, rack, zone, region;
};

struct ModelConstants {
  std::optional<LevelConstants> level;
  std::optional<double> gamma_s_per_byte;         // reduction, of what lies in memory
  std::optional<std::uint64_t> cache_bytes;       // of a vector so many lie in caches; 0: none
  std::optional<double> cached_gamma_s_per_byte;  // reduction, of those
  std::optional<std::uint64_t> segment_bytes;
  std::optional<UplinkConstants> uplink_s_per_byte;
  std::optional<double> host_cores;     // that all ranks of a host share; 0: no limit
  std::optional<double> message_cpu_s;  // of a core, at each end of a message
  std::optional<double> byte_cpu_s;     // likewise, per byte
  std::optional<double> wake_s;         // of a core and of the time, per receiver, with more ranks than cores
};

}  // namespace chorus::api
