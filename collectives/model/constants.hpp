// Costs of messages, reductions and hosts.
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

// Number of levels whose groups have an uplink: host to region. A host's uplink is its network card.
inline constexpr std::size_t uplink_levels = all_levels.size() - 1;

struct Constants {
  std::array<LinkCost, all_levels.size()> level;  // of the link between two ranks, indexed by Level
  double gamma_s_per_byte = 0;                    // reduction, or copy, in memory
  // Bytes of a rank's vector that stay in the caches between the steps of a plan, where arriving data is added to them,
  // if the rank has a core of its own. 0: all is in memory.
  std::uint64_t cache_bytes = 0;
  double cached_gamma_s_per_byte = 0;
  std::uint64_t segment_bytes = 256 * 1024;  // in which schedules cut chunks

  // Bandwidth that all ranks of such a group share towards the others, and the same again for incoming data. 0: no
  // limit besides the links.
  std::array<double, uplink_levels> uplink_s_per_byte{};

  // All ranks of a host share its cores, and a rank moves its messages on one of them. A message takes message_cpu_s +
  // m * byte_cpu_s of a core at each of its ends, a reduction gamma. 0 cores: no limit.
  double host_cores = 0;
  double message_cpu_s = 0;
  double byte_cpu_s = 0;
  // Additional latency if a host has more ranks than cores: ranks cannot afford to poll then, so every message wakes
  // its receiver.
  double wake_s = 0;

  // Limit for plans chosen by auto: memory of a rank beyond its buffers (extra_memory.hpp). A worker shall need its
  // tensors twice and 64 MiB.
  std::uint64_t extra_bytes_max = std::uint64_t{32} << 20;

  [[nodiscard]] LinkCost const& link(Level l) const { return level[static_cast<std::size_t>(l)]; }

  // Part of a message's latency in which each end cannot handle its next message: the work for this one, or all of the
  // latency if that is unknown.
  [[nodiscard]] double overhead_s(LinkCost const& cost) const {
    return message_cpu_s > 0 && message_cpu_s < cost.alpha_s ? message_cpu_s : cost.alpha_s;
  }

  // Orders of magnitude to choose by until links have been measured; constants.cpp tells where each comes from.
  [[nodiscard]] static Constants defaults();
  // The same if the ranks of a host are C++ callers that read each other's memory.
  [[nodiscard]] static Constants shared_memory();
};

// The constants with the links and uplinks of a topology. A host whose card it does not mention has one as fast as the
// links within a rack.
[[nodiscard]] Constants overridden(Constants constants, topology::ShapeSpec const& shape);

}  // namespace chorus::model
