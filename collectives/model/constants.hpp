// What messages, reductions and hosts cost.
#pragma once

#include <array>
#include <cstdint>

#include "collectives/core/locality.hpp"
#include "collectives/topology/shape_spec.hpp"

namespace chorus::model {

struct LinkCost {
  double alpha_s = 0;          // latency of a message
  double beta_s_per_byte = 0;  // inverse bandwidth
};

// Levels whose groups have an uplink: host to region. A host's uplink is its network card.
inline constexpr std::size_t uplink_levels = all_levels.size() - 1;

struct Constants {
  std::array<LinkCost, all_levels.size()> level;  // of the link of two ranks, indexed by Level
  double gamma_s_per_byte = 0;                    // reduction, or copy, of what lies in memory
  // Of a rank's vector so many bytes stay in the caches between the steps of a plan, and what comes is added to them
  // there, if a core is the rank's own. 0: all lies in memory.
  std::uint64_t cache_bytes = 0;
  double cached_gamma_s_per_byte = 0;
  std::uint64_t segment_bytes = 256 * 1024;  // as schedules cut chunks

  // What all ranks of such a group share towards the others, as much again for what comes in. 0: no limit but those of
  // the links.
  std::array<double, uplink_levels> uplink_s_per_byte{};

  // All ranks of a host share its cores, and a rank moves its messages on one of them. A message takes
  // message_cpu_s + m * byte_cpu_s of a core at each of its ends, a reduction gamma. 0 cores: no limit.
  double host_cores = 0;
  double message_cpu_s = 0;
  double byte_cpu_s = 0;
  // More latency where a host has more ranks than cores: then nobody can afford to poll, and every message wakes its
  // receiver.
  double wake_s = 0;

  // A worker is to need its tensors twice and 64 MiB: so plans that take more than this of a rank's memory beyond the
  // first (extra_memory.hpp) are not for auto.
  std::uint64_t extra_bytes_max = std::uint64_t{32} << 20;

  [[nodiscard]] LinkCost const& link(Level l) const { return level[static_cast<std::size_t>(l)]; }

  // Of a message's latency, what keeps each end from its next message: its work for this one, or all of it where that
  // is not known.
  [[nodiscard]] double overhead_s(LinkCost const& cost) const {
    return message_cpu_s > 0 && message_cpu_s < cost.alpha_s ? message_cpu_s : cost.alpha_s;
  }

  // Orders of magnitude to choose by until links have been measured: see constants.cpp for where each comes from.
  [[nodiscard]] static Constants defaults();
  // The same where the ranks of a host are C++ callers that read each other's memory.
  [[nodiscard]] static Constants shared_memory();
};

// The constants with what a topology says of its links and uplinks. A host whose card it does not mention has one as
// fast as the links within a rack.
[[nodiscard]] Constants overridden(Constants constants, topology::ShapeSpec const& shape);

}  // namespace chorus::model
