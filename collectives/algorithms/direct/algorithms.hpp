// The algorithms of this room, which the catalogue lists.
#pragma once

#include "collectives/plan/algorithm.hpp"

namespace chorus::algorithms {

extern plan::Algorithm const allpairs;
extern plan::Algorithm const centralized;
extern plan::Algorithm const direct;
extern plan::Algorithm const mesh;
extern plan::Algorithm const pairwise;

}  // namespace chorus::algorithms
