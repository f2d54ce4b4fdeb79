// Which of the instruction sets that loops are compiled for this processor runs.
#pragma once

#include <array>
#include <cstdint>

namespace chorus::devices {

enum class InstructionSet : std::uint8_t { baseline, avx2, avx512 };  // each contains those before it
inline constexpr std::array all_instruction_sets{InstructionSet::baseline, InstructionSet::avx2,
                                                 InstructionSet::avx512};

// avx2 with f16c; avx512 with f, bw, dq and vl.
[[nodiscard]] InstructionSet best_instruction_set();

}  // namespace chorus::devices
