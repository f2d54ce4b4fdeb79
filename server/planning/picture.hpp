// Draws a plan: ranks from top to bottom, rounds from left to right, messages as arrows.
#pragma once

#include <string>

#include "collectives/plan/algorithm.hpp"

namespace chorus::planning {

// Returns a self-contained SVG. An arrow is as thick as the part of the vector that it carries; reduced messages have
// another colour than copied ones. For up to 16 ranks. The algorithm accepts the spec.
[[nodiscard]] std::string picture(plan::Algorithm const& algorithm, plan::Spec const& spec);

// Returns the spec for the picture of an algorithm: its first operation, and the most ranks of 8, 6, 5 or 4 with at
// most 10 rounds.
[[nodiscard]] plan::Spec spec_to_draw(plan::Algorithm const& algorithm);

}  // namespace chorus::planning
