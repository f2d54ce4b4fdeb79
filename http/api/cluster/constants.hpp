// Constants of the cost model as a message and as a file: `chorus-bench --calibrate` writes the file, and all programs
// that choose algorithms read it. Absent constants keep their value.
#pragma once

#include <cstdint>
#include <optional>

namespace chorus::api {

struct LinkConstants {
  double alpha_s = 0;          // latency of a message
  double beta_s_per_byte = 0;  // inverse bandwidth
};

// Costs of a link between two ranks, by the level that they share.
struct LevelConstants {
  std::optional<LinkConstants> host, rack, zone, region, world;
};

// Inverse bandwidth of the uplink that all ranks of a host, rack, zone or region share; 0: no limit.
struct UplinkConstants {
  std::optional<double> host, rack, zone, region;
};

// Times per byte of the f32 that codes stand for.
struct FormatConstants {
  double encode_s_per_byte = 0;
  double decode_s_per_byte = 0;
  double add_s_per_byte = 0;  // of codes that arrive, to a sum
};

struct CodecConstants {
  std::optional<FormatConstants> bf16, f16, int8, fp8_e4m3;
};

struct ModelConstants {
  std::optional<LevelConstants> level;
  std::optional<double> gamma_s_per_byte;         // time to reduce a byte of a vector in memory
  std::optional<std::uint64_t> cache_bytes;       // so many bytes of a vector lie in caches; 0: none
  std::optional<double> cached_gamma_s_per_byte;  // time to reduce one of these bytes
  std::optional<CodecConstants> codec;            // of compressed collectives
  std::optional<std::uint64_t> segment_bytes;
  std::optional<UplinkConstants> uplink_s_per_byte;
  std::optional<double> host_cores;     // cores that all ranks of a host share; 0: no limit
  std::optional<double> message_cpu_s;  // time of a core at each end of a message
  std::optional<double> byte_cpu_s;     // likewise, per byte
  std::optional<double> wake_s;         // time, also of a core, to wake a receiver, with more ranks than cores
};

}  // namespace chorus::api
