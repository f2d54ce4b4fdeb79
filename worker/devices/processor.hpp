// The instruction sets for which loops are compiled, and the best one that this processor runs.
#pragma once

#include <array>
#include <cstdint>

namespace chorus::devices {

enum class InstructionSet : std::uint8_t { baseline, avx2, avx512 };  // each contains those before it
inline constexpr std::array all_instruction_sets{InstructionSet::baseline, InstructionSet::avx2,
                                                 InstructionSet::avx512};

// avx2 requires f16c; avx512 requires f, bw, dq and vl.
[[nodiscard]] InstructionSet best_instruction_set();

}  // namespace chorus::devices
