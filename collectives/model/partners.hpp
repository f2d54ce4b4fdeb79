// With how many others a plan connects a rank.
#pragma once

#include <cstdint>

#include "collectives/plan/algorithm.hpp"

namespace chorus::model {

// Of the first, the middle and the last rank the one with most. Requires that the algorithm accepts the spec.
[[nodiscard]] std::uint32_t partners(plan::Algorithm const& algorithm, plan::Spec const& spec);

}  // namespace chorus::model
