// The parts of the proof, in the order in which check() runs them. Each relies on the results of those before. Every
// function returns the first failure, or an empty text.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "collectives/plan/program.hpp"

namespace chorus::verify {

// Proves that every program is well formed, and that the channels of each pair of ranks agree in numbers and digests.
[[nodiscard]] std::string check_structure(std::span<plan::Program const> programs);

// Proves for each rank that dependencies order any two instructions of which one writes a chunk that the other
// accesses. Independent of the derivation of dependencies: compares all pairs with all paths.
[[nodiscard]] std::string check_races(std::span<plan::Program const> programs);

// Executes all programs on symbolic values, and compares the final values with the definition of the operation. A
// message moves when both ends are ready and all earlier messages of its channel have moved.
[[nodiscard]] std::string check_execution(std::span<plan::Program const> programs);

// Proves that partial sums in f32 (plan/partial_sums.hpp) may be kept for any small part of their range at a time.
[[nodiscard]] std::string check_lock_step(std::span<plan::Program const> programs);

// Returns text like "rank 3, instruction 12 (send output[0] to 1 message 4)".
[[nodiscard]] std::string where(plan::Program const& program, std::uint32_t instruction);

}  // namespace chorus::verify
