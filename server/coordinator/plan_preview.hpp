// POST /v1/plans: what would run, why, what it would cost, whether it is right, and what moves in each round.
#pragma once

#include <cstdint>
#include <optional>

#include "collectives/model/constants.hpp"
#include "http/api/collectives.hpp"
#include "http/problem.hpp"
#include "server/coordinator/standing.hpp"

namespace chorus::coordinator {

inline constexpr std::uint32_t most_ranks_verified = 64;  // and drawn

// Of a group's members in rank order, or of the ranks that the request describes if there are none. Pure, and slow for
// many ranks: see Planner. Problems: invalid_field with pointers, unsupported.
[[nodiscard]] http::Checked<api::PlanAnswer> preview_plan(api::PlanRequest const& request,
                                                          std::optional<Standing> of_group,
                                                          model::Constants const& constants);

}  // namespace chorus::coordinator
