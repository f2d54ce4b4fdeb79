// Every algorithm, in one constant table.
#pragma once

#include <span>
#include <string_view>

#include "collectives/core/result.hpp"
#include "collectives/plan/algorithm.hpp"

namespace chorus::algorithms {

extern plan::Algorithm const centralized;
extern plan::Algorithm const tree;
extern plan::Algorithm const ring;

extern plan::Algorithm const binomial;
extern plan::Algorithm const chain;
extern plan::Algorithm const scatter_allgather;
extern plan::Algorithm const recursive_doubling;
extern plan::Algorithm const recursive_halving;
extern plan::Algorithm const bruck;
extern plan::Algorithm const dissemination;
extern plan::Algorithm const pairwise;
extern plan::Algorithm const direct;

[[nodiscard]] std::span<plan::Algorithm const* const> all();

// Errors: PlanErrc::unknown_algorithm, naming those that exist.
[[nodiscard]] Result<plan::Algorithm const*> find(std::string_view name);

}  // namespace chorus::algorithms
