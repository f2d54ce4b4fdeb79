// The specs and the orders of ranks with which an algorithm is verified: all that lead to different kinds of plans.
#pragma once

#include <vector>

#include "collectives/plan/algorithm.hpp"

namespace chorus::algorithms {

// For `ranks` ranks: in place and not; arities 1..8, 16, p - 1 and p if the algorithm uses them; the empty shape and
// the algorithm's own; and every class of root: all roots up to 8 ranks, the first two, the middle and the last above.
// Above 256 ranks: arities 1, 2, 8, 16 and p - 1, and the first and the last root. Only specs that the algorithm
// accepts: empty if it cannot do the operation.
[[nodiscard]] std::vector<plan::Spec> representative_specs(plan::Algorithm const& algorithm, Op op,
                                                           std::uint32_t ranks);

// Orders of so many ranks for Spec::by_position: backwards; the even ones before the odd ones, as where ranks alternate
// between two racks; and two without any order. Each once, and not the order of the ranks: none for one rank.
[[nodiscard]] std::vector<std::vector<plan::Rank>> representative_orders(std::uint32_t ranks);

}  // namespace chorus::algorithms
