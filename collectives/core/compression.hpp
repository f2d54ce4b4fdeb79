// Which messages of a collective are codes, and of which format: docs/reference/compressed_collectives.md.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

// A set of formats. A value.
class Formats {
 public:
  constexpr Formats() = default;
  constexpr Formats(std::initializer_list<WireFormat> formats) {
    for (auto const format : formats) add(format);
  }
  constexpr void add(WireFormat format) { bits_ |= bit(format); }
  [[nodiscard]] constexpr bool has(WireFormat format) const { return (bits_ & bit(format)) != 0; }
  [[nodiscard]] constexpr bool is_empty() const { return bits_ == 0; }

  friend constexpr bool operator==(Formats const&, Formats const&) = default;

 private:
  static constexpr std::uint8_t bit(WireFormat format) {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(format));
  }
  std::uint8_t bits_ = 0;
};

// What a caller asks for: one compression, or formats among which the model chooses the fastest, or none if elements
// are faster. A value.
class CompressionWish {
 public:
  CompressionWish() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a format alone means all messages.
  CompressionWish(WireFormat all) : fixed_(all) {}
  CompressionWish(WireFormat of_links, std::optional<Level> between) : fixed_(of_links, between) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  CompressionWish(Compression fixed) : fixed_(fixed) {}

  // `allowed` has a format at least. bf16 alone has the range of f32 and loses the fewest digits of it.
  [[nodiscard]] static CompressionWish automatic(Formats allowed = {WireFormat::bf16},
                                                 std::optional<Level> between = std::nullopt);

  [[nodiscard]] bool is_automatic() const { return !allowed_.is_empty(); }
  // The compression that the caller asks for; none if it is automatic.
  [[nodiscard]] std::optional<Compression> fixed() const {
    return is_automatic() ? std::nullopt : std::optional(fixed_);
  }
  [[nodiscard]] Formats allowed() const { return is_automatic() ? allowed_ : Formats{fixed_.format}; }
  [[nodiscard]] std::optional<Level> between() const { return fixed_.between; }

  friend bool operator==(CompressionWish const&, CompressionWish const&) = default;

 private:
  Compression fixed_;  // of an automatic one only `between` counts
  Formats allowed_;    // empty: fixed_
};

// Reads the names of a format or "auto", of formats that "auto" may take, and of a level. Errors:
// PlanErrc::bad_parameter, naming what there is.
[[nodiscard]] Result<CompressionWish> parse_compression(
    std::string_view format, std::optional<std::string> const& between,
    std::optional<std::vector<std::string>> const& allow = std::nullopt);

// "int8" or "int8 between racks"
[[nodiscard]] std::string to_string(Compression const& compression);
// The same, or "auto of bf16 and int8", "auto of bf16 and int8 between racks".
[[nodiscard]] std::string to_string(CompressionWish const& wish);

}  // namespace chorus
