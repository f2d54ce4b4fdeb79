#include "collectives/topology/shape_spec.hpp"

#include <charconv>
#include <span>
#include <string>

#include "collectives/core/errc.hpp"
#include "collectives/plan/spec.hpp"

namespace chorus::topology {
namespace {

constexpr std::string_view possible_shapes =
    "flat:P, hosts:HxW, racks:RxHxW, zones:ZxRxHxW or regions:GxZxRxHxW, as in hosts:4x8";
constexpr std::string_view possible_overrides =
    "host, rack, zone, region or world=LATENCY,BANDWIDTH, as in rack=25us,25Gbit/s, or uplink_host, uplink_rack, "
    "uplink_zone or uplink_region=BANDWIDTH, as in uplink_rack=100Gbit/s";
constexpr std::string_view possible_latencies = "a latency of at most an hour in ns, us, ms or s, as in 15us";
constexpr std::string_view possible_bandwidths =
    "a bandwidth of 1 byte/s to 1000 TB/s in kB/s, MB/s, GB/s, TB/s, kbit/s, Mbit/s, Gbit/s or Tbit/s, as in 25Gbit/s";
constexpr std::string_view uplink = "uplink_";

Error bad(std::string_view part, std::string_view why, std::string_view expected) {
  constexpr std::size_t longest = 80;
  return Error(PlanErrc::bad_parameter, "topology part '" + std::string(part.substr(0, longest)) +
                                            (part.size() > longest ? "..." : "") + "' " + std::string(why) +
                                            "; expected " + std::string(expected));
}

// The text before the separator; `text` keeps the rest. All of it if there is no separator.
std::string_view cut(std::string_view& text, char separator) {
  auto const part = text.substr(0, text.find(separator));
  text.remove_prefix(part.size() == text.size() ? part.size() : part.size() + 1);
  return part;
}

// The shape's extents from the outside in: region, zone, rack, host and worker; 1 for those that it does not name.
struct Extents {
  std::array<std::uint32_t, 5> of{1, 1, 1, 1, 1};
  std::size_t named = 0;  // number of named extents, counted from the worker outwards
};

struct ShapeName {
  std::string_view name;
  std::size_t extents;
};
constexpr std::array shape_names{ShapeName{"flat", 1}, ShapeName{"hosts", 2}, ShapeName{"racks", 3},
                                 ShapeName{"zones", 4}, ShapeName{"regions", 5}};

Result<Extents> parse_extents(std::string_view part) {
  auto rest = part;
  auto const name = cut(rest, ':');
  Extents extents;
  for (auto const& shape : shape_names)
    if (shape.name == name) extents.named = shape.extents;
  if (extents.named == 0 || name.size() == part.size()) return bad(part, "is no shape", possible_shapes);
  auto workers = std::uint64_t{1};
  auto const* at = rest.data();
  auto const* const end = rest.data() + rest.size();
  for (std::size_t i = 0; i < extents.named; ++i) {
    if (i > 0 && (at == end || *at++ != 'x')) return bad(part, "has too few numbers", possible_shapes);
    auto& extent = extents.of[extents.of.size() - extents.named + i];
    auto const [stop, error] = std::from_chars(at, end, extent);
    if (error != std::errc{} || extent == 0)
      return bad(part, "holds a number that is not a positive count", possible_shapes);
    at = stop;
    workers *= extent;  // below 2^16 * 2^32
    if (workers > plan::max_ranks)
      return bad(part, "has too many workers", "at most " + std::to_string(plan::max_ranks) + " in all");
  }
  if (at != end) return bad(part, "goes on after its numbers", possible_shapes);
  return extents;
}

std::vector<Locality> lay_out(Extents const& extents) {
  // flat:P is P hosts of one worker.
  auto const [regions, zones, racks, hosts, workers] =
      extents.named == 1 ? std::array<std::uint32_t, 5>{1, 1, 1, extents.of[4], 1} : extents.of;
  auto const label = [&](std::size_t named_from, char prefix, std::uint32_t number) {
    return extents.named >= named_from ? prefix + std::to_string(number) : std::string();
  };
  std::vector<Locality> localities;
  for (std::uint32_t region = 0; region < regions; ++region)
    for (std::uint32_t zone = 0; zone < zones; ++zone)
      for (std::uint32_t rack = 0; rack < racks; ++rack)
        for (std::uint32_t host = 0; host < hosts; ++host)
          localities.insert(localities.end(), workers,
                            {label(5, 'g', region), label(4, 'z', zone), label(3, 'r', rack), label(1, 'h', host)});
  return localities;
}

struct Unit {
  std::string_view name;
  double factor;
};
constexpr std::array latency_units{Unit{"ns", 1e-9}, Unit{"us", 1e-6}, Unit{"ms", 1e-3}, Unit{"s", 1}};
constexpr std::array bandwidth_units{Unit{"kB/s", 1e-6},      Unit{"MB/s", 1e-3},       Unit{"GB/s", 1},
                                     Unit{"TB/s", 1e3},       Unit{"kbit/s", 1e-6 / 8}, Unit{"Mbit/s", 1e-3 / 8},
                                     Unit{"Gbit/s", 1.0 / 8}, Unit{"Tbit/s", 1e3 / 8}};

std::optional<double> parse_quantity(std::string_view text, std::span<Unit const> units, double low, double high) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return {};  // no sign, "inf" or "nan"
  auto number = 0.0;
  auto const [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc{}) return {};
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  for (auto const& unit : units)
    if (unit.name == text && number * unit.factor >= low && number * unit.factor <= high) return number * unit.factor;
  return {};
}

std::optional<double> parse_latency(std::string_view text) {
  return parse_quantity(text, latency_units, 0, max_latency_s);
}

std::optional<double> parse_bandwidth(std::string_view text) {
  return parse_quantity(text, bandwidth_units, min_bandwidth_gbyte_per_s, max_bandwidth_gbyte_per_s);
}

Status parse_override(std::string_view part, ShapeSpec& shape) {
  auto value = part;
  auto key = cut(value, '=');
  if (key.size() == part.size()) return bad(part, "has no '='", possible_overrides);
  auto const is_uplink = key.starts_with(uplink);
  if (is_uplink) key.remove_prefix(uplink.size());
  for (auto const level : all_levels) {
    if (key != name(level) || (is_uplink && level == Level::world)) continue;
    auto const index = static_cast<std::size_t>(level);
    if (is_uplink ? shape.uplink_gbyte_per_s[index].has_value() : shape.links[index].has_value())
      return bad(part, "comes a second time", "each override once");
    if (is_uplink) {
      auto const bandwidth = parse_bandwidth(value);
      if (!bandwidth) return bad(part, "does not give what it should", possible_bandwidths);
      shape.uplink_gbyte_per_s[index] = bandwidth;
      return ok();
    }
    if (value.find(',') == std::string_view::npos) return bad(part, "has no ','", possible_overrides);
    auto const latency = parse_latency(cut(value, ','));
    if (!latency) return bad(part, "does not begin as it should", possible_latencies);
    auto const bandwidth = parse_bandwidth(value);
    if (!bandwidth) return bad(part, "does not end as it should", possible_bandwidths);
    shape.links[index] = Link{*latency, *bandwidth};
    return ok();
  }
  return bad(part, "names no level", possible_overrides);
}

}  // namespace

Result<ShapeSpec> parse_shape(std::string_view text) {
  if (text.ends_with(';')) return bad(";", "ends the text", "an override after it: " + std::string(possible_overrides));
  auto const extents = parse_extents(cut(text, ';'));
  if (!extents) return extents.error();
  ShapeSpec shape;
  while (!text.empty())
    if (auto parsed = parse_override(cut(text, ';'), shape); !parsed) return parsed.error();
  shape.localities = lay_out(*extents);
  return shape;
}

Status check_ranks(ShapeSpec const& shape, std::uint32_t ranks) {
  if (shape.localities.size() == ranks) return ok();
  return Error(PlanErrc::bad_parameter, "the topology has " + std::to_string(shape.localities.size()) +
                                            " workers, the request " + std::to_string(ranks) +
                                            " ranks; expected as many, as in flat:" + std::to_string(ranks));
}

}  // namespace chorus::topology
