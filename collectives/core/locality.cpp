#include "collectives/core/locality.hpp"

#include "collectives/core/errc.hpp"

namespace chorus {

Level shared_level(Locality const& a, Locality const& b) {
  if (a.region != b.region) return Level::world;
  if (a.zone != b.zone) return Level::region;
  if (a.rack != b.rack) return Level::zone;
  if (a.host != b.host) return Level::rack;
  return Level::host;
}

std::string_view name(Level level) {
  constexpr std::array<std::string_view, all_levels.size()> names{"host", "rack", "zone", "region", "world"};
  return names[static_cast<std::size_t>(level)];
}

Result<Locality> parse_locality(std::string_view text) {
  Locality locality;
  struct Field {
    std::string_view key;
    std::string* value;
    bool seen = false;
  };
  std::array<Field, 4> fields{Field{"region", &locality.region}, Field{"zone", &locality.zone},
                              Field{"rack", &locality.rack}, Field{"host", &locality.host}};
  auto const malformed = [&](std::string_view part, std::string_view why) {
    return Error(PlanErrc::bad_parameter, "locality part '" + std::string(part) + "' " + std::string(why) +
                                              "; expected region=..,zone=..,rack=..,host=..");
  };
  while (!text.empty()) {
    auto const part = text.substr(0, text.find(','));
    text.remove_prefix(part.size() == text.size() ? part.size() : part.size() + 1);
    auto const equals = part.find('=');
    if (equals == std::string_view::npos) return malformed(part, "has no '='");
    auto* field = static_cast<Field*>(nullptr);
    for (auto& candidate : fields)
      if (candidate.key == part.substr(0, equals)) field = &candidate;
    if (field == nullptr) return malformed(part, "has an unknown key");
    if (field->seen) return malformed(part, "repeats its key");
    field->seen = true;
    // The coordinator has the same limits.
    auto const value = part.substr(equals + 1);
    if (constexpr std::size_t longest = 128; value.size() > longest) return malformed(part, "is longer than 128 bytes");
    for (char const c : value)
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return malformed(part, "has a control character");
    *field->value = value;
  }
  return locality;
}

std::string to_string(Locality const& locality) {
  return "region=" + locality.region + ",zone=" + locality.zone + ",rack=" + locality.rack + ",host=" + locality.host;
}

}  // namespace chorus
