#include "server/planning/crossover.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/core/errc.hpp"
#include "collectives/model/choice/readable.hpp"
#include "server/planning/simulations.hpp"
#include "server/planning/svg.hpp"

namespace chorus::planning {
namespace {

constexpr std::uint64_t smallest_bytes = 4, largest_bytes = std::uint64_t{1} << 30;

Error no_placement(std::string const& placement) {
  return {PlanErrc::bad_parameter, "placement '" + placement.substr(0, 80) +
                                       "' is none; expected flat, host or hosts:W with W ranks per host, as in "
                                       "hosts:8, and overrides as in hosts:8;rack=25us,25Gbit/s"};
}

struct Placement {
  std::string overrides;            // including the semicolon
  std::uint32_t ranks_of_host = 1;  // 0: all ranks on one host
};

Result<Placement> parse(std::string const& text) {
  auto const shape = text.substr(0, text.find(';'));
  Placement placement{text.substr(shape.size()), 1};
  if (shape == "flat") return placement;
  if (shape == "host") return Placement{placement.overrides, 0};
  constexpr std::string_view hosts = "hosts:";
  if (!shape.starts_with(hosts)) return no_placement(text);
  auto const* const end = shape.data() + shape.size();
  auto const [stop, error] = std::from_chars(shape.data() + hosts.size(), end, placement.ranks_of_host);
  if (error != std::errc{} || stop != end || placement.ranks_of_host == 0) return no_placement(text);
  return placement;
}

Result<Winner> winner(Op op, std::string const& topology, std::uint64_t bytes, model::Constants const& constants) {
  api::SimulationRequest request;
  request.op = name(op);
  request.topology = topology;
  request.bytes = bytes;
  auto const answer = simulate(request, constants, std::numeric_limits<std::uint64_t>::max());
  if (answer.has_error()) return Error(PlanErrc::bad_parameter, answer.error().detail);
  auto const& items = answer->items;
  Winner winner{items[0].algorithm, items[0].seconds, {}, 0};
  if (items.size() > 1) {
    winner.second = items[1].algorithm;
    winner.second_seconds = items[1].seconds;
  }
  return winner;
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 4> units{"B", "KiB", "MiB", "GiB"};
  auto unit = std::size_t{0};
  for (; bytes >= 1024 && unit + 1 < units.size(); ++unit) bytes /= 1024;
  return std::to_string(bytes) + " " + std::string(units[unit]);
}

std::string time_text(double seconds) {
  std::array<char, 32> text{};
  auto const [number, unit] = model::in_unit(seconds);
  std::snprintf(text.data(), text.size(), "%.3g %s", number, unit);
  return text.data();
}

// Returns the algorithm's colour, the same in every plot; neighbours in the catalogue have very different hues.
std::string color_of(std::string const& algorithm) {
  auto const all = algorithms::all();
  auto const at = std::find_if(all.begin(), all.end(), [&](auto const* known) { return known->name == algorithm; });
  auto const index = static_cast<int>(at - all.begin());
  return "hsl(" + std::to_string(index * 137 % 360) + ",60%," + std::to_string(index % 2 == 0 ? 72 : 55) + "%)";
}

}  // namespace

Result<std::string> topology_of(std::string const& text, std::uint32_t ranks) {
  auto const placement = parse(text);
  if (placement.has_error()) return placement.error();
  auto const& [overrides, per_host] = *placement;
  auto const workers = per_host == 0 ? ranks : per_host;
  if (workers == 1) return "flat:" + std::to_string(ranks) + overrides;
  if (ranks % workers != 0)
    return Error(PlanErrc::bad_parameter,
                 std::to_string(ranks) + " ranks are no hosts of " + std::to_string(workers) + "; expected a multiple");
  return "hosts:" + std::to_string(ranks / workers) + "x" + std::to_string(workers) + overrides;
}

Result<Crossover> crossover(CrossoverRequest const& request, model::Constants const& constants) {
  auto const placement = parse(request.placement);
  if (placement.has_error()) return placement.error();
  Crossover result{request.op, request.placement, {}, {}, {}};
  for (std::uint32_t ranks = 2; ranks <= request.ranks_max; ranks *= 2)
    if (placement->ranks_of_host < 2 || ranks % placement->ranks_of_host == 0) result.ranks.push_back(ranks);
  if (request.op == Op::barrier)
    result.bytes = {0};
  else
    for (auto bytes = smallest_bytes; bytes <= largest_bytes; bytes *= 4) result.bytes.push_back(bytes);
  for (auto const ranks : result.ranks) {
    auto const topology = topology_of(request.placement, ranks);
    if (topology.has_error()) return topology.error();
    auto& column = result.winners.emplace_back();
    for (auto const bytes : result.bytes) {
      auto fastest = winner(request.op, *topology, bytes, constants);
      if (fastest.has_error()) return fastest.error();
      column.push_back(std::move(*fastest));
    }
  }
  return result;
}

std::string to_svg(Crossover const& crossover) {
  constexpr auto left = 78.0, top = 46.0, cell_width = 56.0, cell_height = 20.0;
  std::map<std::string, std::size_t> wins;
  for (auto const& column : crossover.winners)
    for (auto const& winner : column) ++wins[winner.algorithm];
  auto const rows = crossover.bytes.size(), columns = crossover.ranks.size();
  auto const right = left + static_cast<double>(columns) * cell_width;
  auto const bottom = top + static_cast<double>(rows) * cell_height;
  auto const legend_rows = std::max(rows, wins.size() + 1);
  auto const title =
      "The fastest " + std::string(name(crossover.op)) + " in simulation, ranks placed " + crossover.placement;
  Svg svg(static_cast<int>(std::max(right + 190, 480.0)),
          static_cast<int>(top + static_cast<double>(legend_rows) * cell_height + 50), title);
  svg.text(12, 20, title, Svg::Anchor::start, 14);
  svg.text(left - 8, top - 8, "bytes", Svg::Anchor::end, 11);
  for (std::size_t row = 0; row < rows; ++row) {
    auto const y = bottom - static_cast<double>(row + 1) * cell_height;
    svg.text(left - 8, y + 14, size_text(crossover.bytes[row]), Svg::Anchor::end, 11);
    for (std::size_t column = 0; column < columns; ++column) {
      auto const& winner = crossover.winners[column][row];
      auto hint = winner.algorithm + " " + time_text(winner.seconds);
      if (!winner.second.empty()) hint += ", then " + winner.second + " " + time_text(winner.second_seconds);
      svg.rectangle(
          left + static_cast<double>(column) * cell_width, y, cell_width - 1, cell_height - 1,
          color_of(winner.algorithm),
          std::to_string(crossover.ranks[column]) + " ranks, " + size_text(crossover.bytes[row]) + ": " + hint);
    }
  }
  for (std::size_t column = 0; column < columns; ++column)
    svg.text(left + (static_cast<double>(column) + 0.5) * cell_width, bottom + 16,
             std::to_string(crossover.ranks[column]), Svg::Anchor::middle, 11);
  svg.text((left + right) / 2, bottom + 34, "ranks", Svg::Anchor::middle, 11);
  auto y = top;
  for (auto const* algorithm : algorithms::all())
    if (auto const found = wins.find(std::string(algorithm->name)); found != wins.end()) {
      svg.rectangle(right + 16, y, 14, 14, color_of(found->first));
      svg.text(right + 36, y + 12, found->first, Svg::Anchor::start, 12);
      y += cell_height;
    }
  return svg.document();
}

}  // namespace chorus::planning
