// A plan as a picture: ranks from top to bottom, rounds from left to right, messages as arrows.
#pragma once

#include <string>

#include "collectives/plan/algorithm.hpp"

namespace chorus::planning {

// A self-contained SVG. Arrows are as thick as the part of the vector that they carry; what is reduced on arrival has
// another colour than what is not. For up to 16 ranks. The algorithm accepts the spec.
[[nodiscard]] std::string picture(plan::Algorithm const& algorithm, plan::Spec const& spec);

// The spec to draw an algorithm by: its first operation, and as many of 8, 6, 5 or 4 ranks as leave at most 10 rounds.
[[nodiscard]] plan::Spec spec_to_draw(plan::Algorithm const& algorithm);

}  // namespace chorus::planning
