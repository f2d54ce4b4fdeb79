// The algorithms of this room, which the catalogue lists.
#pragma once

#include "collectives/plan/algorithm.hpp"

namespace chorus::algorithms {

extern plan::Algorithm const bcube;
extern plan::Algorithm const grouped_allpairs;
extern plan::Algorithm const hierarchical;
extern plan::Algorithm const mesh_2d;
extern plan::Algorithm const torus_2d;
extern plan::Algorithm const torus_3d;

}  // namespace chorus::algorithms
