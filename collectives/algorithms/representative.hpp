// Specs and orders of ranks for the proof of an algorithm: all that lead to different kinds of plans.
#pragma once

#include <vector>

#include "collectives/plan/algorithm.hpp"

namespace chorus::algorithms {

// Returns the specs that the algorithm accepts for p = `ranks` ranks; none if it does not have the operation. The specs
// combine
// - in place and not;
// - arities 1..8, 16, p - 1 and p, if the algorithm uses them; above 256 ranks 1, 2, 8, 16 and p - 1;
// - the empty shape and the algorithm's own shapes;
// - all roots up to 8 ranks; the first two, the middle and the last up to 256 ranks; above, the first and the last.
[[nodiscard]] std::vector<plan::Spec> representative_specs(plan::Algorithm const& algorithm, Op op,
                                                           std::uint32_t ranks);

// Returns different orders of so many ranks for Spec::by_position: backwards; even ranks before odd ranks, as if ranks
// alternated between two racks; and two random orders. Never the order of the ranks, so none for one rank.
[[nodiscard]] std::vector<std::vector<plan::Rank>> representative_orders(std::uint32_t ranks);

}  // namespace chorus::algorithms
