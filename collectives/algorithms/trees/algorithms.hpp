// The algorithms of this room, which the catalogue lists.
#pragma once

#include "collectives/plan/algorithm.hpp"

namespace chorus::algorithms {

extern plan::Algorithm const binomial;
extern plan::Algorithm const chain;
extern plan::Algorithm const double_tree;
extern plan::Algorithm const multi_tree;
extern plan::Algorithm const scatter_allgather;
extern plan::Algorithm const tree;

}  // namespace chorus::algorithms
