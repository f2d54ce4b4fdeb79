// The parts of the proof, in the order in which check() runs them; each relies on what the ones before it have shown.
// Every function returns what is wrong, or nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "collectives/plan/program.hpp"

namespace chorus::verify {

// Every program is well formed by itself, and the channels of each pair of ranks agree in numbers and digests.
[[nodiscard]] std::string check_structure(std::span<plan::Program const> programs);

// Within each rank, any two instructions of which one writes what the other touches are ordered by dependencies. Knows
// nothing of how dependencies are derived: compares all pairs against all paths.
[[nodiscard]] std::string check_races(std::span<plan::Program const> programs);

// Executes all programs on symbols. A message moves when both ends are ready and everything before it on its channel
// has moved. Ends when nothing can move, and compares what is there with what the operation defines.
[[nodiscard]] std::string check_execution(std::span<plan::Program const> programs);

// Partial sums in f32 may be kept for a part of their range at a time (plan/partial_sums.hpp), however small.
[[nodiscard]] std::string check_lock_step(std::span<plan::Program const> programs);

// "rank 3, instruction 12 (send output[0] to 1 message 4)"
[[nodiscard]] std::string where(plan::Program const& program, std::uint32_t instruction);

}  // namespace chorus::verify
