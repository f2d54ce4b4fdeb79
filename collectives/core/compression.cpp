#include "collectives/core/compression.hpp"

#include <algorithm>

#include "collectives/core/errc.hpp"
#include "collectives/core/nearest_name.hpp"

namespace chorus {

Result<Compression> parse_compression(std::string_view format, std::optional<std::string> const& between) {
  auto const known = parse_wire_format(format);
  if (!known) return Error(PlanErrc::bad_parameter, unknown_name("format", format, names_of(all_wire_formats)));
  if (!between) return Compression(*known);
  auto const level = std::ranges::find(levels_between, *between, [](Level each) { return name(each); });
  if (level == levels_between.end())
    return Error(PlanErrc::bad_parameter, unknown_name("level", *between, names_of(levels_between)));
  return Compression(*known, *level);
}

std::string to_string(Compression const& compression) {
  auto text = std::string(name(compression.format));
  if (compression.between) text.append(" between ").append(name(*compression.between)).append("s");
  return text;
}

}  // namespace chorus
