#include "server/coordinator/groups/rank_assignment.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <span>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/core/assert.hpp"
#include "collectives/model/choice/select.hpp"
#include "collectives/plan/program.hpp"
#include "collectives/topology/orders/order.hpp"
#include "collectives/topology/roles.hpp"
#include "server/coordinator/topology/compression_table.hpp"
#include "server/coordinator/topology/selection_table.hpp"
#include "server/planning/explain.hpp"

namespace chorus::coordinator {
namespace {

// Roots and arities depend on the size; roles are shown for a medium payload.
constexpr std::uint64_t role_elements = 1 << 18;
constexpr std::size_t role_element_bytes = 4;
constexpr std::uint64_t ring_bytes = role_elements * role_element_bytes;  // payload for which rings are compared

// Well-known algorithms, which are always shown.
constexpr std::array<std::string_view, 3> always_shown{"centralized", "tree", "ring"};

// The algorithms that are always shown, and those that the table chooses for an all_reduce, each in its best form.
// `network` is that of the positions.
Result<std::vector<plan::Spec>> shown_plans(model::Network const& network, std::vector<api::Selection> const& table,
                                            std::vector<std::uint32_t> const& by_position) {
  auto const choice = model::select({}, network, role_elements, role_element_bytes);
  if (choice.has_error()) return choice.error();
  std::set<std::string_view> wanted(always_shown.begin(), always_shown.end());
  for (auto const& line : table)
    if (line.op == name(Op::all_reduce)) wanted.insert(line.algorithm);
  std::vector<plan::Spec> plans;
  for (auto const* algorithm : algorithms::all_for(Op::all_reduce)) {
    auto const& considered = choice.value().considered;
    auto const best = std::ranges::find(considered, algorithm->name, [](auto const& c) { return c.spec.algorithm; });
    if (wanted.contains(algorithm->name) && best != considered.end())
      plans.push_back(planning::in_ranks(best->spec, by_position));
  }
  return plans;
}

Result<std::vector<api::RoleInAlgorithm>> roles_in(std::vector<plan::Spec> const& plans, plan::Rank rank) {
  std::vector<api::RoleInAlgorithm> roles;
  for (auto const& spec : plans) {
    auto const algorithm = algorithms::find(spec.algorithm);
    if (algorithm.has_error()) return algorithm.error();
    auto const program = plan::build(*algorithm.value(), spec, rank);
    if (program.has_error()) return program.error();
    auto role = topology::role_of(program.value());
    roles.push_back({spec.algorithm, role.name, std::move(role.sends_to), std::move(role.receives_from)});
  }
  return roles;
}

Status add_all_roles(model::Network const& network, RankAssignment& rank_assignment) {
  auto const plans = shown_plans(network, rank_assignment.selection, rank_assignment.by_position);
  if (plans.has_error()) return plans.error();
  for (plan::Rank rank = 0; rank < rank_assignment.roles.size(); ++rank) {
    auto roles = roles_in(plans.value(), rank);
    if (roles.has_error()) return roles.error();
    rank_assignment.roles[rank] = std::move(roles.value());
  }
  return ok();
}

// Returns indices in the list, grouped by locality, with ties in the order of seniority.
std::vector<std::uint32_t> by_locality(Standing const& as_listed, std::span<std::uint32_t const> senior) {
  std::vector<std::uint32_t> order;
  for (auto const at : topology::order_by_locality(in_order(as_listed, senior).localities)) order.push_back(senior[at]);
  return order;
}

void survivors_first(Seniority const& seniority, std::vector<std::uint32_t>& order) {
  auto const survivors = std::span(seniority.order).first(seniority.survivors);
  std::erase_if(order, [&](auto member) { return std::ranges::find(survivors, member) != survivors.end(); });
  order.insert(order.begin(), survivors.begin(), survivors.end());
}

void order_ranks(Standing const& as_listed, Seniority const& seniority, model::Constants const& constants,
                 RankAssignment& rank_assignment) {
  auto senior = seniority.order;
  if (senior.empty()) {
    senior.resize(as_listed.localities.size());
    std::iota(senior.begin(), senior.end(), 0);
  }
  auto const rows = by_locality(as_listed, senior);
  rank_assignment.order = rows;
  if (seniority.survivors != 0) survivors_first(seniority, rank_assignment.order);
  if (!as_listed.pairs && !as_listed.gpus) {
    rank_assignment.stretch = {topology::ring_stretch(as_listed.localities),
                               topology::ring_stretch(in_order(as_listed, rank_assignment.order).localities)};
    return;
  }
  auto const standing = in_order(as_listed, rows);
  auto const place = place_of(standing, constants);
  if (seniority.survivors != 0) {
    std::vector<std::uint32_t> ring;
    for (auto const member : rank_assignment.order)
      ring.push_back(static_cast<std::uint32_t>(std::ranges::find(rows, member) - rows.begin()));
    rank_assignment.stretch = planning::stretch_of(*place.links, ring, ring_bytes);
    return;
  }
  auto const ring =
      planning::best_order(*place.links, standing.localities, ring_bytes, as_listed.pairs ? measuring_noise : 0);
  rank_assignment.stretch = ring.stretch;
  for (std::size_t rank = 0; rank < rows.size(); ++rank) rank_assignment.order[rank] = rows[ring.order[rank]];
}

// What was found for ranks is true of positions: the ranks there are as listed.
void list_ranks(RankAssignment& rank_assignment) {
  auto& order = rank_assignment.order;
  if (std::ranges::is_sorted(order)) return;
  rank_assignment.by_position = order;
  for (auto& line : rank_assignment.selection) line.root = order[line.root];
  std::ranges::sort(order);
}

}  // namespace

Result<RankAssignment> arrange(Standing const& as_listed, Seniority const& seniority,
                               model::Constants const& constants) {
  CHORUS_ASSERT(!as_listed.localities.empty(), "a group has members");
  RankAssignment rank_assignment;
  order_ranks(as_listed, seniority, constants, rank_assignment);
  rank_assignment.roles.resize(as_listed.localities.size());
  auto const place = place_of(in_order(as_listed, rank_assignment.order), constants);
  auto const network = place.network();
  rank_assignment.segment_bytes = network.segment_bytes();
  auto selection = selection_table(network);
  if (selection.has_error()) return selection.error();
  rank_assignment.selection = std::move(selection.value());
  rank_assignment.compression = compression_table(network, rank_assignment.selection);
  if (seniority.ranks_as_listed) list_ranks(rank_assignment);
  if (rank_assignment.roles.size() <= ranks_with_roles)
    if (auto status = add_all_roles(network, rank_assignment); status.has_error()) return status.error();
  return rank_assignment;
}

Result<std::vector<api::RoleInAlgorithm>> roles_of(Standing const& standing, std::vector<api::Selection> const& table,
                                                   plan::Rank rank, model::Constants const& constants) {
  auto const place = place_of(standing, constants);
  auto const plans = shown_plans(place.network(), table, standing.by_position);
  if (plans.has_error()) return plans.error();
  return roles_in(plans.value(), rank);
}

}  // namespace chorus::coordinator
