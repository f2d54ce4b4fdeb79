#include "collectives/verify/verify.hpp"

#include <vector>

#include "collectives/plan/text/text.hpp"
#include "collectives/verify/parts.hpp"

namespace chorus::verify {

Report check(std::span<plan::Program const> programs) {
  auto failure = check_structure(programs);
  if (failure.empty()) failure = check_races(programs);
  if (failure.empty()) failure = check_execution(programs);
  if (failure.empty()) failure = check_lock_step(programs);
  return {failure.empty(), failure};
}

Report check(plan::Algorithm const& algorithm, plan::Spec const& spec) {
  std::vector<plan::Program> programs;
  if (auto const status = plan::check(spec); status.has_error()) return {false, status.error().detail};
  programs.reserve(spec.ranks);
  for (plan::Rank rank = 0; rank < spec.ranks; ++rank) {
    auto program = plan::build(algorithm, spec, rank);
    if (program.has_error()) return {false, program.error().detail};
    programs.push_back(std::move(program).value());
  }
  return check(programs);
}

std::string where(plan::Program const& program, std::uint32_t instruction) {
  return "rank " + std::to_string(program.rank) + ", instruction " + std::to_string(instruction) + " (" +
         plan::to_string(program.instructions[instruction]) + ")";
}

}  // namespace chorus::verify
