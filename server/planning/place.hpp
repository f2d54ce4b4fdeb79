// The localities of the ranks of a dry run or a simulation, and their links.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/model/network.hpp"
#include "collectives/topology/link_matrix.hpp"
#include "collectives/topology/shape_spec.hpp"
#include "http/api/collectives/collectives.hpp"
#include "http/json/problem.hpp"

namespace chorus::planning {

// The order in which a ring over workers with known links is fastest.
struct LinkOrder {
  std::vector<std::uint32_t> order;  // order[rank] is the worker's former row
  api::Stretch stretch;              // as in PlanAnswer
};

struct Place {
  topology::ShapeSpec shape;  // its localities are in rank order
  model::Constants constants;
  std::optional<topology::LinkMatrix> links;  // by rank
  std::optional<LinkOrder> ordered;           // if the ranks were ordered by links
  // The rank at each place above, where ranks have an order of their own (plan/positions.hpp); empty: rank i at place
  // i.
  std::vector<plan::Rank> by_position;

  // This object must outlive it.
  [[nodiscard]] model::Network network() const { return {shape.localities, constants, links ? &*links : nullptr}; }
  // Returns the rank of a worker, which is a row in the given links, or already a rank.
  [[nodiscard]] plan::Rank rank_of(std::uint32_t worker) const;
};

// Returns as many hosts with one worker as the links have rows, which is all that links alone define. Problem at
// /links.
[[nodiscard]] http::Checked<topology::ShapeSpec> shape_of(api::LinkMatrix const& links);

// Returns the stretch of a ring in this order of the rows, for a vector of `bytes`; arrival_order is that of the rows.
[[nodiscard]] api::Stretch stretch_of(topology::LinkMatrix const& links, std::span<std::uint32_t const> order,
                                      std::uint64_t bytes);

// Returns the order in which a ring over the links costs least for a vector of `bytes`, beginning with the first worker
// by locality. The order by locality is kept unless another costs less by more than the share `noise`.
[[nodiscard]] LinkOrder best_order(topology::LinkMatrix const& links, std::span<Locality const> localities,
                                   std::uint64_t bytes, double noise = 0);

// Sets the links by which messages between the ranks are priced. A host's network card without a given rate is as fast
// as the fastest link to another host.
void cost_by(topology::LinkMatrix links, Place& place);

// Orders the ranks and their localities by best_order(), then calls cost_by(). Problems at /links, with row and column
// of a missing or impossible value.
[[nodiscard]] std::optional<http::Problem> connect(Place& place, api::LinkMatrix const& links, std::uint64_t bytes);

// Returns the place of the ranks of a request without a group: in the given order or by their links; all on one host if
// only their number is given. Problems: invalid_field with pointers.
[[nodiscard]] http::Checked<Place> place_of(api::PlanRequest const& request, model::Constants const& constants,
                                            std::uint32_t ranks_max);

}  // namespace chorus::planning
