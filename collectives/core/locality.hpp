// Where a worker stands: region / zone / rack / host, the outermost first. Reported by the worker.
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

// The innermost level that two workers share; the cheaper the link the smaller the value.
enum class Level : std::uint8_t { host, rack, zone, region, world };

inline constexpr std::array all_levels{Level::host, Level::rack, Level::zone, Level::region, Level::world};

// A level is shared only if every level around it is: host "a" in two zones is two hosts.
[[nodiscard]] Level shared_level(Locality const& a, Locality const& b);
[[nodiscard]] std::string_view name(Level level);

// "region=eu,zone=eu-1,rack=r7,host=h3": keys in any order, missing ones empty, unknown or repeated ones an error.
[[nodiscard]] Result<Locality> parse_locality(std::string_view text);
[[nodiscard]] std::string to_string(Locality const& locality);

}  // namespace chorus
