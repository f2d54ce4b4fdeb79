#include "worker/devices/reduce.hpp"

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

namespace {

Kernels const& best_kernels() {
  Kernels const* best = nullptr;
  for (auto const* kernels : runnable_kernels())
    if (kernels != nullptr) best = kernels;
  return *best;
}

}  // namespace

Combine find_combine(ReduceOp op, Dtype dtype) {
  return best_kernels().combine[static_cast<std::size_t>(op)][static_cast<std::size_t>(dtype)];
}

Fold find_fold(ReduceOp op, Dtype dtype) {
  return best_kernels().fold[static_cast<std::size_t>(op)][static_cast<std::size_t>(dtype)];
}

FoldAverage find_fold_average(Dtype dtype) { return best_kernels().fold_average[static_cast<std::size_t>(dtype)]; }

HalfCombine find_half_combine(ReduceOp op, Dtype dtype, Width a, Width dst) {
  return best_kernels().half_combine[static_cast<std::size_t>(op)][static_cast<std::size_t>(dtype)]
                                    [static_cast<std::size_t>(a)][static_cast<std::size_t>(dst)];
}

FoldHalves find_fold_halves(ReduceOp op, Dtype dtype, Width source, Width results) {
  return best_kernels().fold_halves[static_cast<std::size_t>(op)][static_cast<std::size_t>(dtype)]
                                   [static_cast<std::size_t>(source)][static_cast<std::size_t>(results)];
}

Widen find_widen(Dtype dtype) { return best_kernels().widen[static_cast<std::size_t>(dtype)]; }

EncodeBlocks find_encode(Dtype block) { return best_kernels().encode[static_cast<std::size_t>(block)]; }

Widen find_decode(Dtype block) { return best_kernels().decode[static_cast<std::size_t>(block)]; }

Divide find_divide(Dtype dtype) { return best_kernels().divide[static_cast<std::size_t>(dtype)]; }

}  // namespace chorus::devices
