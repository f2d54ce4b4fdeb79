#include "server/coordinator/arrangement.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/core/assert.hpp"
#include "collectives/model/select.hpp"
#include "collectives/plan/program.hpp"
#include "collectives/topology/order.hpp"
#include "collectives/topology/roles.hpp"
#include "server/coordinator/selection_table.hpp"

namespace chorus::coordinator {
namespace {

// Roots and arities depend on the size; roles are shown for a payload in the middle of the range.
constexpr std::uint64_t role_elements = 1 << 18;
constexpr std::size_t role_element_bytes = 4;
constexpr std::uint64_t ring_bytes = role_elements * role_element_bytes;  // for which a ring over links is fastest

// Shown in any case: the shapes that everybody knows.
constexpr std::array<std::string_view, 3> always_shown{"centralized", "tree", "ring"};

Status add_roles(plan::Spec const& spec, std::vector<std::vector<api::RoleInAlgorithm>>& roles) {
  auto const algorithm = algorithms::find(spec.algorithm);
  if (algorithm.has_error()) return algorithm.error();
  for (plan::Rank rank = 0; rank < spec.ranks; ++rank) {
    auto const program = plan::build(*algorithm.value(), spec, rank);
    if (program.has_error()) return program.error();
    auto role = topology::role_of(program.value());
    roles[rank].push_back({spec.algorithm, role.name, std::move(role.sends_to), std::move(role.receives_from)});
  }
  return ok();
}

// Those always shown, and those that the table chooses for an all_reduce, each in its best form.
Status add_all_roles(model::Network const& network, Arrangement& arrangement) {
  auto const choice = model::select({}, network, role_elements, role_element_bytes);
  if (choice.has_error()) return choice.error();
  std::set<std::string_view> wanted(always_shown.begin(), always_shown.end());
  for (auto const& line : arrangement.selection)
    if (line.op == name(Op::all_reduce)) wanted.insert(line.algorithm);
  for (auto const* algorithm : algorithms::all_for(Op::all_reduce)) {
    auto const& considered = choice.value().considered;
    auto const best = std::ranges::find(considered, algorithm->name, [](auto const& c) { return c.spec.algorithm; });
    if (!wanted.contains(algorithm->name) || best == considered.end()) continue;
    if (auto status = add_roles(best->spec, arrangement.roles); status.has_error()) return status;
  }
  return ok();
}

void order_ranks(Standing const& as_listed, model::Constants const& constants, Arrangement& arrangement) {
  arrangement.order = topology::order_by_locality(as_listed.localities);
  auto const by_locality = in_order(as_listed, arrangement.order);
  if (!as_listed.pairs && !as_listed.gpus) {
    arrangement.stretch = {topology::ring_stretch(as_listed.localities),
                           topology::ring_stretch(by_locality.localities)};
    return;
  }
  auto const place = place_of(by_locality, constants);
  auto const ring =
      planning::best_order(*place.links, by_locality.localities, ring_bytes, as_listed.pairs ? measuring_noise : 0);
  arrangement.stretch = ring.stretch;
  auto const listed = std::exchange(arrangement.order, {});
  for (auto const worker : ring.order) arrangement.order.push_back(listed[worker]);
}

}  // namespace

Result<Arrangement> arrange(Standing const& as_listed, model::Constants const& constants) {
  CHORUS_ASSERT(!as_listed.localities.empty(), "a group has members");
  Arrangement arrangement;
  order_ranks(as_listed, constants, arrangement);
  arrangement.roles.resize(as_listed.localities.size());
  auto const place = place_of(in_order(as_listed, arrangement.order), constants);
  auto const network = place.network();
  arrangement.segment_bytes = network.segment_bytes();
  auto selection = selection_table(network);
  if (selection.has_error()) return selection.error();
  arrangement.selection = std::move(selection.value());
  if (auto status = add_all_roles(network, arrangement); status.has_error()) return status.error();
  return arrangement;
}

}  // namespace chorus::coordinator
