#include "collectives/model/choice/candidates.hpp"

#include <algorithm>
#include <array>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/core/errc.hpp"
#include "collectives/topology/orders/order.hpp"
#include "collectives/topology/orders/root.hpp"
#include "collectives/topology/trees/link_trees.hpp"

namespace chorus::model {
namespace {

using plan::Algorithm, plan::Rank, plan::Shape, plan::Spec;

constexpr std::array<std::uint32_t, 3> arities{2, 4, 8};
constexpr std::uint32_t most_ranks_with_trees = 16;
constexpr std::uint32_t most_trees = 4;

constexpr std::array grouping_levels{Level::host, Level::rack, Level::zone, Level::region};

bool are_neighbours(Network const& network, Level level) {
  for (Rank rank = 1; rank < network.ranks(); ++rank)
    if (network.group(level, rank) < network.group(level, rank - 1)) return false;
  return true;
}

bool are_equal(Shape const& sizes) {
  return std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to()) == sizes.end();
}

void add_new(std::vector<Shape>& shapes, Shape shape) {
  if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(std::move(shape));
}

// Adds the extents of levels whose groups all have one size: {groups, ranks in each}, and the nest of all these levels.
void add_extents(std::vector<Shape> const& sizes, std::uint32_t ranks, std::vector<Shape>& shapes) {
  Shape nest;  // fastest first
  auto inner = std::uint32_t{1};
  for (auto const& level : sizes) {
    if (!are_equal(level)) continue;
    auto const size = level.front();
    add_new(shapes, {ranks / size, size});
    if (size % inner != 0) continue;
    nest.push_back(size / inner);
    inner = size;
  }
  if (nest.size() < 2) return;
  nest.push_back(ranks / inner);
  add_new(shapes, Shape(nest.rbegin(), nest.rend()));
}

Result<topology::LinkMatrix> links_of(Network const& network) {
  if (network.links() != nullptr) return *network.links();
  topology::LevelLinks links;
  for (auto const level : all_levels) {
    auto const& [alpha_s, beta] = network.constants().link(level);
    links[static_cast<std::size_t>(level)] = {alpha_s, 1e-9 / beta};
  }
  return topology::LinkMatrix::from_localities(network.localities(), links);
}

void add_trees(Network const& network, std::vector<Shape>& shapes) {
  auto const matrix = links_of(network);
  if (matrix.has_error()) return;  // constants outside the limits of a link
  std::vector<Rank> roots;
  auto const count = std::min(network.ranks(), most_trees);
  for (std::uint32_t tree = 0; tree < count; ++tree) roots.push_back(tree * network.ranks() / count);
  auto const trees = topology::link_trees(matrix.value(), roots, {.exhaustive_up_to = 8});
  if (trees.has_error()) return;
  Shape parents;
  for (auto const& tree : trees.value()) parents.insert(parents.end(), tree.parent.begin(), tree.parent.end());
  add_new(shapes, std::move(parents));
}

bool have_different_links(Network const& network) {
  if (network.links() != nullptr) return true;
  for (Rank rank = 2; rank < network.ranks(); ++rank)
    if (network.level(0, rank) != network.level(0, 1)) return true;
  return false;
}

Rank best_root(Network const& network) {
  if (network.links() == nullptr) return topology::center(network.localities());
  return topology::root_of_least_cost(
      network.links()->hop_seconds(static_cast<double>(network.constants().segment_bytes)));
}

template <class Has>
std::string names_of(Has has) {
  std::string names;
  for (auto const* algorithm : algorithms::all())
    if (has(*algorithm)) names.append(names.empty() ? "" : ", ").append(algorithm->name);
  return names.empty() ? "none does" : names + (names.find(',') == std::string::npos ? " does" : " do");
}

bool sends_codes(Algorithm const& algorithm) { return algorithm.coded_from != nullptr; }

}  // namespace

std::optional<Level> coded_level(std::optional<Compression> const& compression, Network const& network) {
  if (!compression || !compression->between) return std::nullopt;
  auto const level = *compression->between;
  return network.largest_group(level) == network.ranks() ? std::nullopt : std::optional(level);
}

Result<Shape> shape_between(Level level, Network const& network) {
  if (are_neighbours(network, level)) return network.group_sizes(level);
  auto const group = std::string(name(level));
  return Error(PlanErrc::unsupported_operation, "codes between " + group + "s need the ranks of each " + group +
                                                    " side by side in the group's order, which is not by locality");
}

std::vector<Shape> shapes_of(Network const& network) {
  std::vector<Shape> sizes, shapes;
  for (auto const level : grouping_levels) {
    if (!are_neighbours(network, level)) continue;
    auto groups = network.group_sizes(level);
    if (groups.size() > 1 && groups.size() < network.ranks()) add_new(sizes, std::move(groups));
  }
  shapes = sizes;
  add_extents(sizes, network.ranks(), shapes);
  if (network.ranks() <= most_ranks_with_trees && have_different_links(network)) add_trees(network, shapes);
  return shapes;
}

Candidates::Candidates(Wish wish, Network const& network)
    : wish_(std::move(wish)),
      network_(network),
      root_(wish_.root            ? *wish_.root
            : is_rooted(wish_.op) ? 0
                                  : best_root(network)),
      coded_level_(model::coded_level(wish_.compression, network)),
      shapes_(shapes_of(network)) {}

std::vector<Spec> Candidates::of(Algorithm const& algorithm) const {
  std::vector<Spec> specs;
  // Without codes these plans only have copies that others do not have.
  if (coded_level_ ? !sends_codes(algorithm) : sends_codes(algorithm) && algorithm.name != wish_.algorithm)
    return specs;
  for (auto& shape : shapes_for(algorithm)) {
    auto spec = plain(algorithm);
    spec.shape = std::move(shape);
    for (auto const arity : arities) {
      spec.arity = algorithm.uses_arity ? wish_.arity.value_or(arity) : 2;
      if (algorithm.check(spec).has_value() && fits(algorithm, spec)) specs.push_back(spec);
      // Every larger arity would give the same star.
      if (!algorithm.uses_arity || wish_.arity || arity + 1 >= spec.ranks) break;
    }
  }
  return specs;
}

Spec Candidates::plain(Algorithm const& algorithm) const {
  Spec spec{
      .op = wish_.op, .algorithm = std::string(algorithm.name), .ranks = network_.ranks(), .in_place = wish_.in_place};
  if (algorithm.rooted || is_rooted(wish_.op)) spec.root = root_;
  if (algorithm.uses_arity) spec.arity = wish_.arity.value_or(2);
  return spec;
}

std::vector<Shape> Candidates::shapes_for(Algorithm const& algorithm) const {
  if (coded_level_) {
    auto const shape = shape_between(*coded_level_, network_);
    return shape ? std::vector<Shape>{*shape} : std::vector<Shape>();
  }
  if (wish_.shape) return {*wish_.shape};
  std::vector<Shape> shapes{{}};
  if (algorithm.shapes == nullptr) return shapes;
  for (auto& shape : algorithm.shapes(network_.ranks())) add_new(shapes, std::move(shape));
  for (auto const& shape : shapes_) add_new(shapes, shape);
  // Leaves out parents of whole trees, and groups of one: with many ranks the search of a shape in every round costs
  // more than the shape gains.
  if (network_.ranks() > most_ranks_with_trees)
    std::erase_if(shapes, [&](Shape const& shape) { return shape.size() > network_.ranks() / 2; });
  return shapes;
}

bool Candidates::fits(Algorithm const& algorithm, Spec const& spec) const {
  bool const is_named = algorithm.name == wish_.algorithm;
  if (wish_.shape && !is_named) return false;
  if (wish_.uneven && algorithm.equal_chunks != nullptr && algorithm.equal_chunks(spec)) return false;
  if (!reduces(wish_.op)) return true;
  bool const is_free = is_named || coded_level_;
  if (wish_.without_wider_sums && !is_free && plan::summation_of(algorithm, spec) == plan::Summation::any) return false;
  if (!wish_.reproducible) return true;
  return algorithm.in_worker_order != nullptr && algorithm.in_worker_order(spec);
}

Error Candidates::refusal(Algorithm const& algorithm) const {
  auto spec = plain(algorithm);
  auto const op = std::string(name(wish_.op));
  auto const can = [&](Algorithm const& other) { return other.check(plain(other)).has_value(); };
  if (!can(algorithm) && !wish_.arity)
    return {PlanErrc::unsupported_operation, spec.algorithm + " does not do " + op + "; " + names_of(can)};
  if (coded_level_ && !sends_codes(algorithm))
    return {PlanErrc::unsupported_operation,
            spec.algorithm + " sends no codes between groups; " +
                names_of([&](Algorithm const& other) { return can(other) && sends_codes(other); })};
  if (coded_level_) return refusal();
  spec.shape = wish_.shape.value_or(Shape());
  if (auto const status = algorithm.check(spec); status.has_error()) return status.error();
  auto const fitting = names_of([&](Algorithm const& other) { return can(other) && fits(other, plain(other)); });
  if (wish_.reproducible && reduces(wish_.op))
    return {PlanErrc::unsupported_operation, spec.algorithm + " does not reduce in worker order; " + fitting};
  return {PlanErrc::unsupported_operation, spec.algorithm + " needs blocks of equal size; with others " + fitting};
}

Error Candidates::refusal() const {
  if (coded_level_)
    if (auto const shape = shape_between(*coded_level_, network_); !shape) return shape.error();
  if (coded_level_)
    return {PlanErrc::unsupported_operation, "no algorithm does " + std::string(name(wish_.op)) +
                                                 " with codes between " + std::string(name(*coded_level_)) +
                                                 "s; all_reduce has one"};
  return {PlanErrc::unsupported_operation, "no algorithm does " + std::string(name(wish_.op)) +
                                               (wish_.reproducible ? " in worker order" : "") +
                                               (wish_.uneven ? " with uneven blocks" : "")};
}

}  // namespace chorus::model
