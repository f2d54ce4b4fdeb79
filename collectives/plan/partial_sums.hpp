// Partial sums of f16 and bf16 that a rank keeps in f32, and the instructions that make them.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/plan/program.hpp"

namespace chorus::plan {

// The instructions of one partial sum, in program order: the first begins it, others add to it element for element, and
// the last one rounds the result. All have the same number of elements. In a right program (verify::check) the first
// has no wide operand, and the last no wide result.
using PartialSum = std::vector<std::uint32_t>;

// Returns all partial sums of a program. Each instruction with a wide operand or result is in exactly one.
[[nodiscard]] std::vector<PartialSum> partial_sums(Program const& program);

}  // namespace chorus::plan
