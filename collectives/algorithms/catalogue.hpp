// Catalogue: all algorithms, in one constant table.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "collectives/core/result.hpp"
#include "collectives/plan/algorithm.hpp"

namespace chorus::algorithms {

extern plan::Algorithm const mesh;
extern plan::Algorithm const centralized;
extern plan::Algorithm const tree;
extern plan::Algorithm const double_tree;
extern plan::Algorithm const multi_tree;
extern plan::Algorithm const ring_naive;
extern plan::Algorithm const ring;
extern plan::Algorithm const halving_doubling;
extern plan::Algorithm const swing;
extern plan::Algorithm const bcube;
extern plan::Algorithm const allpairs;
extern plan::Algorithm const hierarchical;
extern plan::Algorithm const torus_2d;
extern plan::Algorithm const torus_3d;
extern plan::Algorithm const mesh_2d;

extern plan::Algorithm const binomial;
extern plan::Algorithm const chain;
extern plan::Algorithm const scatter_allgather;
extern plan::Algorithm const recursive_doubling;
extern plan::Algorithm const recursive_halving;
extern plan::Algorithm const bruck;
extern plan::Algorithm const dissemination;
extern plan::Algorithm const pairwise;
extern plan::Algorithm const direct;
extern plan::Algorithm const grouped_allpairs;

[[nodiscard]] std::span<plan::Algorithm const* const> all();

// Returns the algorithms that have the operation.
[[nodiscard]] std::vector<plan::Algorithm const*> all_for(Op op);

// Returns the algorithm of this name. Errors: PlanErrc::unknown_algorithm, with the names of all algorithms.
[[nodiscard]] Result<plan::Algorithm const*> find(std::string_view name);

}  // namespace chorus::algorithms
