#include "server/cli/text/format.hpp"

#include <algorithm>

#include "collectives/algorithms/catalogue.hpp"

namespace chorus::cli {
namespace {

constexpr std::size_t peers_shown = 6;
constexpr std::size_t extents_shown = 8;

std::string format_peers(std::span<std::uint32_t const> peers) {
  std::string text;
  for (std::size_t i = 0; i < std::min(peers.size(), peers_shown); ++i)
    text += (i == 0 ? "" : ",") + std::to_string(peers[i]);
  if (peers.size() > peers_shown) text += "+" + std::to_string(peers.size() - peers_shown);
  return text;
}

}  // namespace

std::string join(std::span<std::string const> parts, std::string_view separator) {
  std::string text;
  for (auto const& part : parts) {
    if (&part != &parts.front()) text += separator;
    text += part;
  }
  return text;
}

std::string format_locality(Locality const& locality) {
  if (locality == Locality{}) return "";
  std::string text;
  for (auto const* part : {&locality.region, &locality.zone, &locality.rack, &locality.host})
    text += (text.empty() ? "" : "/") + (part->empty() ? "-" : *part);
  return text;
}

std::string format_role(api::RoleInAlgorithm const& role) {
  auto const from = format_peers(role.receives_from);
  auto const to = format_peers(role.sends_to);
  if (from.empty() && to.empty()) return role.role;
  return role.role + " " + (role.receives_from == role.sends_to ? to : from + ">" + to);
}

std::string format_algorithm(std::string const& name, std::uint32_t root, std::uint32_t arity,
                             std::vector<std::uint32_t> const& shape) {
  // An algorithm that this build does not know is shown with all its parameters.
  auto const known = algorithms::find(name);
  auto text = name;
  if (!known || (*known)->uses_arity) text += " arity " + std::to_string(arity);
  for (std::size_t i = 0; i < std::min(shape.size(), extents_shown); ++i)
    text += (i == 0 ? " shape " : ",") + std::to_string(shape[i]);
  if (shape.size() > extents_shown) text += ",...";
  if (!known || (*known)->rooted || root != 0) text += " root " + std::to_string(root);
  return text;
}

std::string format_order(std::vector<std::uint32_t> const& order, api::Stretch const& stretch) {
  constexpr std::size_t shown_max = 32;
  std::string text;
  for (std::size_t rank = 0; rank < std::min(order.size(), shown_max); ++rank)
    text += (rank == 0 ? "" : " ") + std::to_string(order[rank]);
  if (order.size() > shown_max) text += " +" + std::to_string(order.size() - shown_max);
  std::array<char, 96> numbers{};
  std::snprintf(numbers.data(), numbers.size(), ", average stretch %.2f as listed, %.2f so", stretch.arrival_order,
                stretch.assigned);
  return text + numbers.data();
}

bool has_ended(api::Collective const& collective) {
  return collective.state == "succeeded" || collective.state == "failed" || collective.state == "cancelled";
}

}  // namespace chorus::cli
