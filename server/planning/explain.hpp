// How the model's choice is shown to people: at the coordinator for groups and dry runs, and by `chorus plan` on paper.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/core/result.hpp"
#include "collectives/model/select.hpp"
#include "http/api/collectives.hpp"
#include "server/planning/place.hpp"

namespace chorus::planning {

inline constexpr std::uint32_t drawn_ranks_max = 64;  // PlanAnswer::rounds is empty above

// The cheapest way of each of the cheapest algorithms, at most so many of them, and what was chosen; cheapest first.
[[nodiscard]] std::vector<api::Considered> show_cheapest(model::Choice const& choice, std::size_t most);
[[nodiscard]] api::LowerBound show_lower_bound(Op op, std::uint32_t ranks, std::uint64_t bytes);

// The whole answer of a dry run over `bytes` per rank: the choice, its proof if it has up to `verified_ranks_max`
// ranks, and what moves in each round. Pure; builds every rank's program, so the work grows with the square of the
// ranks for a ring. Errors: PlanErrc.
[[nodiscard]] Result<api::PlanAnswer> explain(model::Choice const& choice, std::uint64_t bytes,
                                              std::uint32_t verified_ranks_max);

// The choice for the ranks of a place, explained, and how they were ordered. A root in the wish is a row of the given
// links, if there are some. Errors: PlanErrc.
[[nodiscard]] Result<api::PlanAnswer> plan_in(Place const& place, model::Wish wish, std::uint64_t elements,
                                              std::size_t element_bytes, std::uint32_t verified_ranks_max);

}  // namespace chorus::planning
