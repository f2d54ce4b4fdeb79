// Latency and bandwidth of one directed connection between two workers.
#pragma once

#include <array>
#include <string_view>

#include "collectives/core/locality.hpp"
#include "collectives/core/result.hpp"

namespace chorus::topology {

// A hop of m bytes takes latency + m / bandwidth (Hockney's model: alpha and 1 / beta). 1 GB is 10^9 bytes.
struct Link {
  double latency_s = 0;
  double bandwidth_gbyte_per_s = 0;

  [[nodiscard]] double seconds(double bytes) const { return latency_s + bytes / (bandwidth_gbyte_per_s * 1e9); }
  friend bool operator==(Link const&, Link const&) = default;
};

// One link per level of locality, indexed by Level.
using LevelLinks = std::array<Link, all_levels.size()>;

// Limits of links: from a byte a second to a petabyte a second, at most an hour of latency. Within these limits every
// cost and every sum of costs is finite.
inline constexpr double min_bandwidth_gbyte_per_s = 1e-9;
inline constexpr double max_bandwidth_gbyte_per_s = 1e6;
inline constexpr double max_latency_s = 3600;

// Ok within the limits; otherwise PlanErrc::bad_parameter with the value and the limits. `where` begins the sentence
// ("link from 0 to 3").
[[nodiscard]] Status check(Link const& link, std::string_view where);

}  // namespace chorus::topology
