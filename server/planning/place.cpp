#include "server/planning/place.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "collectives/topology/orders/order.hpp"
#include "collectives/topology/orders/ring_order.hpp"
#include "collectives/topology/orders/stretch.hpp"

namespace chorus::planning {
namespace {

using topology::LinkMatrix;

constexpr auto host = static_cast<std::size_t>(Level::host);
constexpr std::size_t locality_bytes_max = 512;

http::Problem invalid(std::string pointer, std::string detail) {
  http::Problem problem(http::ProblemCode::invalid_field, detail);
  problem.errors.push_back({std::move(pointer), std::move(detail)});
  return problem;
}

// One of the two matrices of a request.
struct Given {
  api::LinkMatrix::Rows const& rows;
  std::string field;
  std::string what;    // "bandwidth"
  std::string limits;  // "1e-09 to 1e+06 GB/s"

  [[nodiscard]] std::string pointer() const { return "/links/" + field; }
  [[nodiscard]] std::string pointer(std::size_t row) const { return pointer() + "/" + std::to_string(row); }
};

std::optional<http::Problem> check_square(Given const& given, std::size_t workers) {
  auto const expected = "; expected " + std::to_string(workers) + " x " + std::to_string(workers) +
                        ", null on the diagonal, for as many workers";
  if (given.rows.size() != workers)
    return invalid(given.pointer(),
                   "the " + given.what + " matrix has " + std::to_string(given.rows.size()) + " rows" + expected);
  for (std::size_t row = 0; row < workers; ++row)
    if (given.rows[row].size() != workers)
      return invalid(given.pointer(row), "row " + std::to_string(row) + " of the " + given.what + " matrix has " +
                                             std::to_string(given.rows[row].size()) + " entries" + expected);
  return std::nullopt;
}

std::string link_name(std::size_t from, std::size_t to) {
  return "link (" + std::to_string(from) + ", " + std::to_string(to) + ")";
}

// Returns the numbers of a square matrix times `scale`. `link_with` makes a link of a number, with a valid other value.
template <class LinkWith>
http::Checked<LinkMatrix::Rows> numbers_of(Given const& given, double scale, LinkWith link_with) {
  LinkMatrix::Rows numbers(given.rows.size(), std::vector<double>(given.rows.size()));
  for (std::size_t from = 0; from < given.rows.size(); ++from)
    for (std::size_t to = 0; to < given.rows.size(); ++to) {
      if (from == to) continue;
      auto const at = given.pointer(from) + "/" + std::to_string(to);
      auto const& entry = given.rows[from][to];
      if (!entry)
        return invalid(at, "the " + given.what + " of " + link_name(from, to) + " is missing; expected " +
                               given.limits + "; null stands on the diagonal alone");
      numbers[from][to] = *entry * scale;
      if (auto const usable = topology::check(link_with(numbers[from][to]), link_name(from, to)); usable.has_error())
        return invalid(at, usable.error().detail);
    }
  return numbers;
}

http::Checked<LinkMatrix> matrix_of(api::LinkMatrix const& links, std::size_t workers) {
  if (workers > topology::max_matrix_workers)
    return invalid("/links", "links of " + std::to_string(workers) + " workers; expected 1 to " +
                                 std::to_string(topology::max_matrix_workers));
  Given const bandwidth{links.bandwidth_gbyte_per_s, "bandwidth_gbyte_per_s", "bandwidth", "1e-9 to 1e6 GB/s"};
  Given const latency{links.latency_us, "latency_us", "latency", "0 to 3.6e9 us"};
  if (auto problem = check_square(bandwidth, workers)) return std::move(*problem);
  if (auto problem = check_square(latency, workers)) return std::move(*problem);
  auto const gbyte_per_s = numbers_of(bandwidth, 1, [](double value) { return topology::Link{0, value}; });
  if (gbyte_per_s.has_error()) return gbyte_per_s.error();
  auto const seconds = numbers_of(latency, 1e-6, [](double value) { return topology::Link{value, 1}; });
  if (seconds.has_error()) return seconds.error();
  auto matrix = LinkMatrix::make(gbyte_per_s.value(), seconds.value());
  if (matrix.has_error()) return invalid("/links", matrix.error().detail);
  return std::move(matrix.value());
}

// Returns seconds per byte of a host's network card, derived from links between ranks. Returns 0, no extra limit, if
// every host has one rank or there is only one host.
double card_s_per_byte(LinkMatrix const& links, std::span<Locality const> localities) {
  auto fastest = std::numeric_limits<double>::infinity();
  bool shared = false;
  for (std::uint32_t from = 0; from < links.size(); ++from)
    for (std::uint32_t to = 0; to < links.size(); ++to) {
      if (from == to) continue;
      if (shared_level(localities[from], localities[to]) == Level::host)
        shared = true;
      else
        fastest = std::min(fastest, 1e-9 / links.link(from, to).bandwidth_gbyte_per_s);
    }
  return shared && fastest < std::numeric_limits<double>::infinity() ? fastest : 0;
}

bool is_printable(unsigned char c) { return c >= 0x20 && c != 0x7f; }

std::string size_text(std::size_t ranks, std::uint32_t ranks_max) {
  return std::to_string(ranks) + " ranks; expected 1 to " + std::to_string(ranks_max);
}

http::Checked<topology::ShapeSpec> parse_all(std::vector<std::string> const& texts) {
  topology::ShapeSpec shape;
  for (auto const& text : texts) {
    auto const at = "/localities/" + std::to_string(shape.localities.size());
    if (text.size() > locality_bytes_max || !std::ranges::all_of(text, is_printable))
      return invalid(at, "expected at most 512 bytes without control characters");
    auto locality = parse_locality(text);
    if (locality.has_error()) return invalid(at, locality.error().detail);
    shape.localities.push_back(std::move(locality.value()));
  }
  return shape;
}

// For a request that has localities, a topology, or the number of ranks.
http::Checked<topology::ShapeSpec> described_by(api::PlanRequest const& request, std::uint32_t ranks_max) {
  if (request.topology) {
    if (request.localities) return invalid("/topology", "either a topology or localities");
    auto shape = topology::parse_shape(*request.topology);
    if (shape.has_error()) return invalid("/topology", shape.error().detail);
    return std::move(shape.value());
  }
  if (request.localities) return parse_all(*request.localities);
  if (request.links) return planning::shape_of(*request.links);
  auto const ranks = request.ranks.value_or(0);
  if (ranks == 0 || ranks > ranks_max) return invalid("/ranks", size_text(ranks, ranks_max));
  topology::ShapeSpec shape;
  shape.localities.resize(ranks);
  return shape;
}

std::string said_by(api::PlanRequest const& request) {
  return request.topology ? "topology" : request.localities ? "localities" : request.links ? "links" : "ranks";
}

}  // namespace

plan::Rank Place::rank_of(std::uint32_t worker) const {
  if (!ordered || worker >= ordered->order.size()) return worker;
  return static_cast<plan::Rank>(std::ranges::find(ordered->order, worker) - ordered->order.begin());
}

namespace {

// Hop costs for a ring's part of the vector; at least one byte, so that no hop is free.
topology::SquareMatrix ring_hops(LinkMatrix const& links, std::uint64_t bytes) {
  return links.hop_seconds(std::max(1.0, static_cast<double>(bytes) / static_cast<double>(links.size())));
}

}  // namespace

api::Stretch stretch_of(LinkMatrix const& links, std::span<std::uint32_t const> order, std::uint64_t bytes) {
  if (links.size() < 2) return {};
  std::vector<std::uint32_t> listed(links.size());
  std::iota(listed.begin(), listed.end(), 0);
  auto const costs = ring_hops(links, bytes);
  auto const unit = topology::least_hop(costs);
  return {topology::average_stretch(costs, listed, unit), topology::average_stretch(costs, order, unit)};
}

LinkOrder best_order(LinkMatrix const& links, std::span<Locality const> localities, std::uint64_t bytes, double noise) {
  auto const costs = ring_hops(links, bytes);
  auto by_locality = topology::order_by_locality(localities);
  auto ring = topology::ring_order(costs, by_locality);
  auto const is_better = ring.cost < (1 - noise) * topology::ring_cost(costs, by_locality);
  auto order = is_better ? std::move(ring.order) : std::move(by_locality);
  auto const stretch = stretch_of(links, order, bytes);
  return {std::move(order), stretch};
}

void cost_by(LinkMatrix links, Place& place) {
  if (!place.shape.uplink_gbyte_per_s[host])
    place.constants.uplink_s_per_byte[host] = card_s_per_byte(links, place.shape.localities);
  place.links = std::move(links);
}

http::Checked<topology::ShapeSpec> shape_of(api::LinkMatrix const& links) {
  auto const workers = links.bandwidth_gbyte_per_s.size();
  if (workers == 0 || workers > topology::max_matrix_workers)
    return invalid("/links/bandwidth_gbyte_per_s", "links of " + std::to_string(workers) + " workers; expected 1 to " +
                                                       std::to_string(topology::max_matrix_workers));
  return topology::parse_shape("flat:" + std::to_string(workers)).value();
}

std::optional<http::Problem> connect(Place& place, api::LinkMatrix const& links, std::uint64_t bytes) {
  auto& localities = place.shape.localities;
  auto const matrix = matrix_of(links, localities.size());
  if (matrix.has_error()) return matrix.error();
  place.ordered = best_order(matrix.value(), localities, bytes);
  std::vector<Locality> in_rank_order;
  for (auto const worker : place.ordered->order) in_rank_order.push_back(std::move(localities[worker]));
  localities = std::move(in_rank_order);
  cost_by(matrix.value().in_order(place.ordered->order), place);
  return std::nullopt;
}

http::Checked<Place> place_of(api::PlanRequest const& request, model::Constants const& constants,
                              std::uint32_t ranks_max) {
  auto shape = described_by(request, ranks_max);
  if (shape.has_error()) return shape.error();
  auto const ranks = shape.value().localities.size();
  auto const source = said_by(request);
  if (ranks == 0 || ranks > ranks_max) return invalid("/" + source, size_text(ranks, ranks_max));
  if (request.ranks && *request.ranks != ranks)
    return invalid(source == "links" ? "/links/bandwidth_gbyte_per_s" : "/" + source,
                   source + " of " + std::to_string(ranks) + " for " + std::to_string(*request.ranks) + " ranks");
  auto place = Place{std::move(shape.value()), constants, std::nullopt, std::nullopt};
  if (request.topology) place.constants = model::overridden(constants, place.shape);
  if (request.links)
    if (auto problem = connect(place, *request.links, request.bytes)) return std::move(*problem);
  return place;
}

}  // namespace chorus::planning
