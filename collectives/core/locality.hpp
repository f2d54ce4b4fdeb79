// Place of a worker in the network: region / zone / rack / host, the outermost first. Reported by the worker.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "collectives/core/result.hpp"

namespace chorus {

struct Locality {
  std::string region, zone, rack, host;
  friend auto operator<=>(Locality const&, Locality const&) = default;
};

// The innermost common place of two workers. Smaller values mean cheaper links.
enum class Level : std::uint8_t { host, rack, zone, region, world };

inline constexpr std::array all_levels{Level::host, Level::rack, Level::zone, Level::region, Level::world};

// Returns the innermost level that both share. A level is shared only if every level around it is shared: host "a" in
// two zones is two hosts.
[[nodiscard]] Level shared_level(Locality const& a, Locality const& b);
[[nodiscard]] std::string_view name(Level level);

// Parses "region=eu,zone=eu-1,rack=r7,host=h3" with keys in any order. Missing keys give empty values. Errors:
// PlanErrc::bad_parameter for unknown and repeated keys, control characters, and values over 128 bytes.
[[nodiscard]] Result<Locality> parse_locality(std::string_view text);
[[nodiscard]] std::string to_string(Locality const& locality);

}  // namespace chorus
