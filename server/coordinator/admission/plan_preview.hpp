// POST /v1/plans: the plan that would run, its reason, cost, proof, and transfers per round.
#pragma once

#include <cstdint>
#include <optional>

#include "collectives/model/constants.hpp"
#include "http/api/collectives/collectives.hpp"
#include "http/json/problem.hpp"
#include "server/coordinator/topology/standing.hpp"

namespace chorus::coordinator {

inline constexpr std::uint32_t most_ranks_verified = 64;  // also the limit for drawing

// Plans for the members of a group in rank order, or for the ranks that the request describes if there is no group.
// Pure, and slow for many ranks: see Planner. Problems: invalid_field with pointers, unsupported.
[[nodiscard]] http::Checked<api::PlanAnswer> preview_plan(api::PlanRequest const& request,
                                                          std::optional<Standing> of_group,
                                                          model::Constants const& constants);

}  // namespace chorus::coordinator
