// The answer of POST /v1/plans for a group that does not exist, computed in this process.
#pragma once

#include "collectives/core/result.hpp"
#include "collectives/model/constants.hpp"
#include "collectives/plan/program.hpp"
#include "http/api/collectives/collectives.hpp"

namespace chorus::cli {

inline constexpr std::uint32_t local_ranks_limit = 1024;  // every rank's program is built: p^2 instructions for a ring

// A plan, and its number of ranks.
struct Planned {
  api::PlanAnswer answer;
  std::uint32_t ranks = 0;
};

// The request has localities or the number of ranks, and no group. Errors: PlanErrc, and CliErrc::bad_value for fields
// that do not fit together.
[[nodiscard]] Result<Planned> plan_locally(api::PlanRequest const& request, model::Constants const& constants);

// Returns one rank's program of the plan in an answer. Errors: PlanErrc, also for an algorithm of a newer release.
[[nodiscard]] Result<plan::Program> program_of(api::PlanAnswer const& answer, Op op, std::uint32_t ranks,
                                               plan::Rank rank);

}  // namespace chorus::cli
