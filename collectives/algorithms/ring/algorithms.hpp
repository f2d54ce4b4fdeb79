// The algorithms of this room, which the catalogue lists.
#pragma once

#include "collectives/plan/algorithm.hpp"

namespace chorus::algorithms {

extern plan::Algorithm const ring;
extern plan::Algorithm const ring_naive;

}  // namespace chorus::algorithms
