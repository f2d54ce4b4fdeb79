#include "worker/service/collectives/runs/run_memory.hpp"

#include "worker/tensors/memory.hpp"

namespace chorus::service {

using http::Problem;
using http::ProblemCode;

std::optional<Problem> damage_of(tensors::Block const& block) {
  auto const* region = block.region();
  auto const why = region != nullptr ? region->damage() : std::nullopt;
  if (!why) return std::nullopt;
  return Problem(ProblemCode::region_damaged, "region " + region->name() + ": " + *why);
}

std::optional<Problem> RunMemory::damage() const {
  for (auto const& block : clients)
    if (auto problem = damage_of(*block)) return problem;
  return std::nullopt;
}

}  // namespace chorus::service
