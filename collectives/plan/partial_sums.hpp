// The sums that a rank keeps in f32 on their way, of f16 and bf16, and who adds to them.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/plan/program.hpp"

namespace chorus::plan {

// What one instruction begins, others add to, element for element, and the last one ends, whose result is rounded. In
// the order of the program, all of as many elements. In a right program (verify::check) the first has no wide operand,
// the last no wide result.
using PartialSum = std::vector<std::uint32_t>;

// Each instruction with a wide operand or result is in one of them.
[[nodiscard]] std::vector<PartialSum> partial_sums(Program const& program);

}  // namespace chorus::plan
