// Which messages of a collective are codes, and of which format: docs/reference/compressed_collectives.md.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "collectives/core/locality.hpp"
#include "collectives/core/result.hpp"
#include "collectives/core/wire_format.hpp"

namespace chorus {

// A value.
struct Compression {
  Compression() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a format alone means all messages.
  Compression(WireFormat all) : format(all) {}
  Compression(WireFormat of_links, std::optional<Level> level) : format(of_links), between(level) {}

  WireFormat format = WireFormat::bf16;
  // Messages between two groups of this level (host, rack, zone or region) are codes, those within one are elements.
  // None: all are codes.
  std::optional<Level> between;

  friend bool operator==(Compression const&, Compression const&) = default;
};

// What `between` may be.
inline constexpr std::array levels_between{Level::host, Level::rack, Level::zone, Level::region};

// Reads the names of a format and of a level. Errors: PlanErrc::bad_parameter, naming what there is.
[[nodiscard]] Result<Compression> parse_compression(std::string_view format, std::optional<std::string> const& between);

// "int8" or "int8 between racks"
[[nodiscard]] std::string to_string(Compression const& compression);

}  // namespace chorus
