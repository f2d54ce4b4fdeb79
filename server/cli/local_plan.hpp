// The answer of POST /v1/plans for a group that only exists on paper, computed in this process.
#pragma once

#include "collectives/core/result.hpp"
#include "collectives/model/constants.hpp"
#include "collectives/plan/program.hpp"
#include "http/api/collectives.hpp"

namespace chorus::cli {

inline constexpr std::uint32_t local_ranks_limit = 1024;  // every rank's program is built: p^2 instructions for a ring

// What was planned, and for how many ranks.
struct Planned {
  api::PlanAnswer answer;
  std::uint32_t ranks = 0;
};

// The request says where ranks stand or how many there are, and has no group. Errors: PlanErrc, and CliErrc::bad_value
// for fields that do not fit together.
[[nodiscard]] Result<Planned> plan_locally(api::PlanRequest const& request, model::Constants const& constants);

// One rank's program of the plan that an answer describes. Errors: PlanErrc, also for an algorithm of a newer release.
[[nodiscard]] Result<plan::Program> program_of(api::PlanAnswer const& answer, Op op, std::uint32_t ranks,
                                               plan::Rank rank);

}  // namespace chorus::cli
