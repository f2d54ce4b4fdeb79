// The algorithms of this room, which the catalogue lists.
#pragma once

#include "collectives/plan/algorithm.hpp"

namespace chorus::algorithms {

extern plan::Algorithm const bruck;
extern plan::Algorithm const dissemination;
extern plan::Algorithm const halving_doubling;
extern plan::Algorithm const recursive_doubling;
extern plan::Algorithm const recursive_halving;
extern plan::Algorithm const swing;

}  // namespace chorus::algorithms
