// Reduction in the order of the workers: ((v0 op v1) op v2) op ..., at any rank. All algorithms that reduce every
// element in one place in this order give the same bits.
#pragma once

#include "collectives/plan/algorithm.hpp"

namespace chorus::algorithms {

// `rank` adds the contribution of `contributor`; call for 0, 1, ..., p-1 in this order, its own turn included. The
// other ranks send their contributions. The sum grows in `sum` and ends in `result`, chunks of the same numbers as the
// contributions. The two may be the same, unless the rank's own contribution is there in place and waits for its turn.
// p >= 2.
void take_in_worker_order(plan::Spec const& spec, plan::Rank rank, plan::Rank contributor, plan::Slice sum,
                          plan::Slice result, plan::Sink& sink);

}  // namespace chorus::algorithms
