// The specs by which an algorithm is proved: everything that makes another kind of plan.
#pragma once

#include <vector>

#include "collectives/plan/algorithm.hpp"

namespace chorus::algorithms {

// For `ranks` ranks: in place and not; arities 1..8, 16, p - 1 and p where they count; the empty shape and the
// algorithm's own; and every class of root: all of them up to 8 ranks, above the first two, the middle and the last.
// Above 256 ranks arities 1, 2, 8, 16 and p - 1, and the first and the last root. Only specs that the algorithm
// accepts: empty if it cannot do the operation.
[[nodiscard]] std::vector<plan::Spec> representative_specs(plan::Algorithm const& algorithm, Op op,
                                                           std::uint32_t ranks);

}  // namespace chorus::algorithms
