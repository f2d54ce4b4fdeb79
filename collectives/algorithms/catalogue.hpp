// Every algorithm, in one constant table.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "collectives/core/result.hpp"
#include "collectives/plan/algorithm.hpp"

namespace chorus::algorithms {

extern plan::Algorithm const centralized;
extern plan::Algorithm const tree;
extern plan::Algorithm const ring;

[[nodiscard]] std::span<plan::Algorithm const* const> all();

// Those that can do the operation.
[[nodiscard]] std::vector<plan::Algorithm const*> all_for(Op op);

// Errors: PlanErrc::unknown_algorithm, naming those that exist.
[[nodiscard]] Result<plan::Algorithm const*> find(std::string_view name);

}  // namespace chorus::algorithms
