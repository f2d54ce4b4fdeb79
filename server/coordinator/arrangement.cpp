#include "server/coordinator/arrangement.hpp"

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

Status add_roles(plan::Algorithm const& algorithm, std::span<Locality const> localities,
                 model::Constants const& constants, std::vector<std::vector<api::RoleInAlgorithm>>& roles) {
  model::Wish wish;
  wish.algorithm = algorithm.name;
  auto const choice = model::select(wish, localities, role_elements, role_element_bytes, constants);
  if (choice.has_error()) return choice.error();
  for (plan::Rank rank = 0; rank < localities.size(); ++rank) {
    auto const program = plan::build(algorithm, choice.value().spec, rank);
    if (program.has_error()) return program.error();
    auto role = topology::role_of(program.value());
    roles[rank].push_back(
        {std::string(algorithm.name), role.name, std::move(role.sends_to), std::move(role.receives_from)});
  }
  return ok();
}

}  // namespace

Result<Arrangement> arrange(std::span<Locality const> as_listed, model::Constants const& constants) {
  CHORUS_ASSERT(!as_listed.empty(), "a group has members");
  Arrangement arrangement;
  arrangement.order = topology::order_by_locality(as_listed);
  std::vector<Locality> in_rank_order;
  for (auto index : arrangement.order) in_rank_order.push_back(as_listed[index]);
  arrangement.stretch = {topology::ring_stretch(as_listed), topology::ring_stretch(in_rank_order)};
  arrangement.roles.resize(as_listed.size());
  for (auto const* algorithm : algorithms::all())
    if (auto status = add_roles(*algorithm, in_rank_order, constants, arrangement.roles); status.has_error())
      return status.error();
  auto selection = selection_table(in_rank_order, constants);
  if (selection.has_error()) return selection.error();
  arrangement.selection = std::move(selection.value());
  return arrangement;
}

}  // namespace chorus::coordinator
