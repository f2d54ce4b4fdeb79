// The loops of optimizers, compiled once per instruction set.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "collectives/core/dtype.hpp"

namespace chorus::parameters {

enum class Method : std::uint8_t { sgd, momentum, nesterov, adagrad, adam, adamw };
inline constexpr std::size_t methods_count = 6;
inline constexpr std::size_t float_dtypes_count = 4;  // Dtype's first four: f64, f32, f16, bf16

// Computed in double and rounded to the type of the computation once per call.
struct Coefficients {
  double rate = 0;                         // of the step; of adam and adamw with the correction of the first moment
  double first = 0;                        // mu, or beta1
  double second = 0;                       // beta2
  double first_rest = 0, second_rest = 0;  // 1 - beta1, 1 - beta2
  double root = 1;                         // 1 / sqrt(1 - beta2^t)
  double epsilon = 0;
  double decay = 0;  // weight decay; of adamw times the learning rate
  double scale = 1;  // of the gradient, from the clipping by norm
  double limit = 0;  // of each element's magnitude after that; infinity: none
};

struct StepArguments {
  std::byte* values = nullptr;
  std::byte const* gradient = nullptr;
  std::byte* master = nullptr;  // f32, of f16 and bf16 values
  std::byte* first = nullptr;   // state, as far as the method has it
  std::byte* second = nullptr;
  std::uint64_t elements = 0;
  Coefficients coefficients;
};

// Plain arrays: see the note on weak symbols in devices/lanes.inc.
struct StepKernels {
  char const* name = nullptr;
  using StepLoop = void (*)(StepArguments const&);
  // By method, dtype, whether the gradient of halves is f32, and whether the gradient is clipped or decayed first.
  StepLoop step[methods_count][float_dtypes_count][2][2] = {};
  // The sum of the squares of f64 and f32, in 16 partial sums of every 16th element each.
  void (*squares[2])(std::byte const* at, std::uint64_t elements, double* sums16) = {};
  std::uint64_t (*count_nonfinite[float_dtypes_count])(std::byte const* at, std::uint64_t elements) = {};
  std::uint64_t (*zero_nonfinite[float_dtypes_count])(std::byte* at, std::uint64_t elements) = {};
};

[[nodiscard]] StepKernels const& baseline_kernels();
#if defined(__x86_64__)
[[nodiscard]] StepKernels const& avx2_kernels();
[[nodiscard]] StepKernels const& avx512_kernels();
#endif

// The kernels that this processor can run, the fastest last.
[[nodiscard]] std::array<StepKernels const*, 3> const& runnable_kernels();  // null where there are fewer
[[nodiscard]] StepKernels const& best_kernels();

}  // namespace chorus::parameters
