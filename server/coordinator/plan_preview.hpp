// POST /v1/plans: what would run, why, what it would cost, whether it is right, and what moves in each round.
#pragma once

#include <span>
#include <vector>

#include "collectives/core/locality.hpp"
#include "collectives/model/cost.hpp"
#include "http/api/collectives.hpp"
#include "http/problem.hpp"

namespace chorus::coordinator {

inline constexpr std::size_t most_ranks_verified = 64;  // and drawn

// Where the ranks of a request without a group stand: in the order given, all on one host if nothing is given.
// Problems: invalid_field with pointers.
[[nodiscard]] http::Checked<std::vector<Locality>> localities_of(api::PlanRequest const& request);

// Pure, and slow for many ranks: see Planner. Problems: invalid_field, unsupported.
[[nodiscard]] http::Checked<api::PlanAnswer> preview_plan(api::PlanRequest const& request,
                                                          std::span<Locality const> in_rank_order,
                                                          model::Constants const& constants);

}  // namespace chorus::coordinator
