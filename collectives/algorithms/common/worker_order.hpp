// Reduction in the order of the workers: ((v0 op v1) op v2) op ..., at any rank. All algorithms that reduce every
// element in one place in this order give the same bits.
#pragma once

#include "collectives/plan/algorithm.hpp"

namespace chorus::algorithms {

// Emits the step in which `rank` adds the contribution of `contributor`. Call it for contributors 0, 1, ..., p-1 in
// this order, its own turn included; the other ranks send their contributions. The sum grows in `sum` and ends in
// `result`, which have the chunk numbers of the contributions. The two may be equal, unless the rank's own contribution
// is there in place. p >= 2.
void take_in_worker_order(plan::Spec const& spec, plan::Rank rank, plan::Rank contributor, plan::Slice sum,
                          plan::Slice result, plan::Sink& sink);

}  // namespace chorus::algorithms
