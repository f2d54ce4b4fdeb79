// Catalogue: all algorithms, in one constant table.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "collectives/algorithms/direct/algorithms.hpp"
#include "collectives/algorithms/doubling/algorithms.hpp"
#include "collectives/algorithms/grouped/algorithms.hpp"
#include "collectives/algorithms/ring/algorithms.hpp"
#include "collectives/algorithms/trees/algorithms.hpp"
#include "collectives/core/result.hpp"
#include "collectives/plan/algorithm.hpp"

namespace chorus::algorithms {

[[nodiscard]] std::span<plan::Algorithm const* const> all();

// Returns the algorithms that have the operation.
[[nodiscard]] std::vector<plan::Algorithm const*> all_for(Op op);

// Returns the algorithm of this name. Errors: PlanErrc::unknown_algorithm, with the names of all algorithms.
[[nodiscard]] Result<plan::Algorithm const*> find(std::string_view name);

// Returns the folder beside this file that has the source of the algorithm, which is one of all().
[[nodiscard]] std::string_view room_of(plan::Algorithm const& algorithm);

}  // namespace chorus::algorithms
