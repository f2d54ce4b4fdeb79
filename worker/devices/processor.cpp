#include "worker/devices/processor.hpp"

namespace chorus::devices {

InstructionSet best_instruction_set() {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("f16c")) return InstructionSet::baseline;
  bool const avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx512 ? InstructionSet::avx512 : InstructionSet::avx2;
#else
  return InstructionSet::baseline;
#endif
}

}  // namespace chorus::devices
