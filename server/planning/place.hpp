// Where the ranks of a dry run or a simulation stand, and what connects them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/model/network.hpp"
#include "collectives/topology/link_matrix.hpp"
#include "collectives/topology/shape_spec.hpp"
#include "http/api/collectives.hpp"
#include "http/problem.hpp"

namespace chorus::planning {

// Workers whose links are known, in the order in which a ring over them is fastest.
struct LinkOrder {
  std::vector<std::uint32_t> order;  // order[rank] is the row that the worker had
  api::Stretch stretch;              // as in PlanAnswer
};

struct Place {
  topology::ShapeSpec shape;  // its localities are in rank order
  model::Constants constants;
  std::optional<topology::LinkMatrix> links;  // by rank
  std::optional<LinkOrder> ordered;           // if the ranks were ordered by links

  // This object must outlive it.
  [[nodiscard]] model::Network network() const { return {shape.localities, constants, links ? &*links : nullptr}; }
  // Of a worker that is known by its row in the given links, or is a rank already.
  [[nodiscard]] plan::Rank rank_of(std::uint32_t worker) const;
};

// As many hosts of one worker as the links have rows: what links alone say. Problem at /links.
[[nodiscard]] http::Checked<topology::ShapeSpec> shape_of(api::LinkMatrix const& links);

// By what a ring over the links pays for a vector of `bytes`, beginning with the first worker by locality. The order by
// locality stays unless another costs less by more than `noise`, a share of it.
[[nodiscard]] LinkOrder best_order(topology::LinkMatrix const& links, std::span<Locality const> localities,
                                   std::uint64_t bytes, double noise = 0);

// Costs messages by these links of the ranks. A host's network card that nobody has mentioned is as fast as the fastest
// link to another host.
void cost_by(topology::LinkMatrix links, Place& place);

// Orders the ranks by best_order(); places come along; then cost_by(). Problems at /links, where something is missing
// or beyond what a link can be with the row and column.
[[nodiscard]] std::optional<http::Problem> connect(Place& place, api::LinkMatrix const& links, std::uint64_t bytes);

// Where the ranks of a request without a group stand: in the order given or by their links, all on one host if only
// their number is given. Problems: invalid_field with pointers.
[[nodiscard]] http::Checked<Place> place_of(api::PlanRequest const& request, model::Constants const& constants,
                                            std::uint32_t ranks_max);

}  // namespace chorus::planning
