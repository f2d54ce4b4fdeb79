// The cost of an algorithm in closed form, for groups so large that to build and follow every rank's program would cost
// more than the collective: every link counts as the slowest level that the group spans. Coarser than cost(): tests
// hold the two within a factor of 1.5 on groups of one level.
#pragma once

#include <optional>

#include "collectives/model/cost.hpp"

namespace chorus::model {

// Nothing for an algorithm that has no closed form here.
[[nodiscard]] std::optional<Cost> estimate(plan::Spec const& spec, LinkCost const& slowest, std::uint64_t elements,
                                           std::size_t element_bytes, Constants const& constants);

}  // namespace chorus::model
