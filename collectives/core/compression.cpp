#include "collectives/core/compression.hpp"

#include <algorithm>

#include "collectives/core/assert.hpp"
#include "collectives/core/errc.hpp"
#include "collectives/core/nearest_name.hpp"

namespace chorus {

namespace {

constexpr std::string_view automatic = "auto";

Result<WireFormat> parse_format(std::string_view text) {
  if (auto const known = parse_wire_format(text)) return *known;
  return Error(PlanErrc::bad_parameter, unknown_name("format", text, names_of(all_wire_formats)));
}

Result<Formats> parse_allowed(std::vector<std::string> const& names) {
  Formats formats;
  for (auto const& each : names) {
    auto const format = parse_format(each);
    if (!format) return format.error();
    formats.add(*format);
  }
  if (formats.is_empty()) return Error(PlanErrc::bad_parameter, "'auto' has to be allowed a format at least");
  return formats;
}

void add_level(std::string& text, std::optional<Level> level) {
  if (level) text.append(" between ").append(name(*level)).append("s");
}

}  // namespace

CompressionWish CompressionWish::automatic(Formats allowed, std::optional<Level> between) {
  CHORUS_ASSERT(!allowed.is_empty(), "auto is allowed a format");
  CompressionWish wish;
  wish.fixed_.between = between;
  wish.allowed_ = allowed;
  return wish;
}

Result<CompressionWish> parse_compression(std::string_view format, std::optional<std::string> const& between,
                                          std::optional<std::vector<std::string>> const& allow) {
  std::optional<Level> level;
  if (between) {
    auto const known = std::ranges::find(levels_between, *between, [](Level each) { return name(each); });
    if (known == levels_between.end())
      return Error(PlanErrc::bad_parameter, unknown_name("level", *between, names_of(levels_between)));
    level = *known;
  }
  if (format != automatic) {
    auto const known = parse_format(format);
    if (!known) return known.error();
    if (allow) return Error(PlanErrc::bad_parameter, "formats are allowed to 'auto', not beside a format");
    return CompressionWish(*known, level);
  }
  if (!allow) return CompressionWish::automatic({WireFormat::bf16}, level);
  auto const allowed = parse_allowed(*allow);
  if (!allowed) return allowed.error();
  return CompressionWish::automatic(*allowed, level);
}

std::string to_string(Compression const& compression) {
  auto text = std::string(name(compression.format));
  add_level(text, compression.between);
  return text;
}

std::string to_string(CompressionWish const& wish) {
  if (auto const fixed = wish.fixed()) return to_string(*fixed);
  std::string text;
  for (auto const format : all_wire_formats)
    if (wish.allowed().has(format)) text.append(text.empty() ? "auto of " : " and ").append(name(format));
  add_level(text, wish.between());
  return text;
}

}  // namespace chorus
