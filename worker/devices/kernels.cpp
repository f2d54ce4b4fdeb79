#include "worker/devices/kernels.hpp"

#include "worker/devices/processor.hpp"

namespace chorus::devices {

std::array<Kernels const*, 3> const& runnable_kernels() {
  static std::array<Kernels const*, 3> const runnable = [] {
    std::array<Kernels const*, 3> found{&baseline_kernels(), nullptr, nullptr};
#if defined(__x86_64__)
    auto const best = best_instruction_set();
    if (best >= InstructionSet::avx2) found[1] = &avx2_kernels();
    if (best >= InstructionSet::avx512) found[2] = &avx512_kernels();
#endif
    return found;
  }();
  return runnable;
}

Kernels const& best_kernels() {
  static Kernels const* const best = [] {
    Kernels const* last = nullptr;
    for (auto const* kernels : runnable_kernels())
      if (kernels != nullptr) last = kernels;
    return last;
  }();
  return *best;
}

}  // namespace chorus::devices
