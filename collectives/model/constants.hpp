// Constants of the cost model: costs of messages, reductions and hosts.
#pragma once

#include <array>
#include <cstdint>

#include "collectives/core/locality.hpp"
#include "collectives/core/wire_format.hpp"
#include "collectives/topology/shape_spec.hpp"

namespace chorus::model {

struct LinkCost {
  double alpha_s = 0;          // latency of a message
  double beta_s_per_byte = 0;  // inverse bandwidth
};

// Times of one core for codes of a format, per byte of the f32 that they stand for.
struct CodecCost {
  double encode_s_per_byte = 0;
  double decode_s_per_byte = 0;
  double add_s_per_byte = 0;  // of codes that arrive, to a sum
};

// Number of levels whose groups have an uplink: host to region. A host's uplink is its network card.
inline constexpr std::size_t uplink_levels = all_levels.size() - 1;

struct Constants {
  std::array<LinkCost, all_levels.size()> level;  // of the link between two ranks, indexed by Level
  double gamma_s_per_byte = 0;                    // of a reduction, or a copy, in memory
  // Bytes of a rank's vector that stay in the caches between the steps of a plan, if the rank has a core of its own.
  // Arriving data is added to them there. 0: the whole vector is in memory.
  std::uint64_t cache_bytes = 0;
  double cached_gamma_s_per_byte = 0;
  std::array<CodecCost, all_wire_formats.size()> codec{};  // indexed by WireFormat
  std::uint64_t segment_bytes = 256 * 1024;                // default of schedules

  // Inverse bandwidth of the uplink that all ranks of a group share, for each direction. 0: only links limit.
  std::array<double, uplink_levels> uplink_s_per_byte{};

  // Cores that all ranks of a host share; a rank moves its messages on one of them. 0: no limit. A message of m bytes
  // takes message_cpu_s + m * byte_cpu_s of a core at each of its ends, and a reduction takes gamma.
  double host_cores = 0;
  double message_cpu_s = 0;
  double byte_cpu_s = 0;
  // Additional latency if a host has more ranks than cores: ranks do not poll then, and messages wake their receivers.
  double wake_s = 0;

  // Limit for plans chosen by auto: memory of a rank beyond its buffers (extra_memory.hpp). The goal is a worker that
  // needs no more memory than its tensors twice and 64 MiB.
  std::uint64_t extra_bytes_max = std::uint64_t{32} << 20;

  [[nodiscard]] CodecCost const& codec_of(WireFormat format) const { return codec[static_cast<std::size_t>(format)]; }
  [[nodiscard]] LinkCost const& link(Level l) const { return level[static_cast<std::size_t>(l)]; }

  // Returns the part of a message's latency in which each end cannot handle its next message: the work for this
  // message, or the whole latency if that work is unknown.
  [[nodiscard]] double overhead_s(LinkCost const& cost) const {
    return message_cpu_s > 0 && message_cpu_s < cost.alpha_s ? message_cpu_s : cost.alpha_s;
  }

  // Orders of magnitude for selection until links have been measured. constants.cpp has the sources.
  [[nodiscard]] static Constants defaults();
  // The defaults for hosts whose ranks are C++ callers that read each other's memory.
  [[nodiscard]] static Constants shared_memory();
};

// Returns the constants with the links and uplinks of a topology. A network card that the topology does not give is as
// fast as the links within a rack.
[[nodiscard]] Constants overridden(Constants constants, topology::ShapeSpec const& shape);

}  // namespace chorus::model
