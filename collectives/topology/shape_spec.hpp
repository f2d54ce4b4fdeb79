// Hypothetical topologies in one line of text, for simulations and dry runs.
//
//   SPEC      = SHAPE { ";" OVERRIDE }
//   SHAPE     = "flat:" P | "hosts:" HxW | "racks:" RxHxW | "zones:" ZxRxHxW | "regions:" GxZxRxHxW
//   OVERRIDE  = LEVEL "=" LATENCY "," BANDWIDTH          the link of two workers whose innermost shared level that is
//             | "uplink_" GROUP "=" BANDWIDTH            what all workers of one such group share towards the others
//   LEVEL     = "host" | "rack" | "zone" | "region" | "world"
//   GROUP     = "host" | "rack" | "zone" | "region"      uplink_host is the network card of a host
//   LATENCY   = number "ns" | "us" | "ms" | "s"
//   BANDWIDTH = number "kB/s" | "MB/s" | "GB/s" | "TB/s" | "kbit/s" | "Mbit/s" | "Gbit/s" | "Tbit/s"
//
// "racks:2x4x8;rack=25us,25Gbit/s;uplink_rack=100Gbit/s": two racks of four hosts of eight workers. flat is P hosts of
// one worker in one rack. Numbers are decimal, 1 GB/s is 10^9 bytes a second; no spaces; each override at most once.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "collectives/core/locality.hpp"
#include "collectives/core/result.hpp"
#include "collectives/topology/link.hpp"

namespace chorus::topology {

struct ShapeSpec {
  std::vector<Locality> localities;                          // of the workers in rank order, grouped by level
  std::array<std::optional<Link>, all_levels.size()> links;  // indexed by Level; empty: the model's default
  // Indexed by Level::host to Level::region: bandwidth out of such a group, and the same again into it. Empty: the
  // model's default.
  std::array<std::optional<double>, all_levels.size() - 1> uplink_gbyte_per_s;

  friend bool operator==(ShapeSpec const&, ShapeSpec const&) = default;
};

// Errors: PlanErrc::bad_parameter, with the part that does not parse and the possible ones. Workers: 1 to
// plan::max_ranks.
[[nodiscard]] Result<ShapeSpec> parse_shape(std::string_view text);

// Checks that the topology has as many workers as the request has ranks; PlanErrc::bad_parameter with both numbers if
// not.
[[nodiscard]] Status check_ranks(ShapeSpec const& shape, std::uint32_t ranks);

}  // namespace chorus::topology
