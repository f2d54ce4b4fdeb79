// The kernels of optimizers, compiled once per instruction set.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "collectives/core/dtype.hpp"

namespace chorus::parameters {

enum class Method : std::uint8_t { sgd, momentum, nesterov, adagrad, adam, adamw };
inline constexpr std::size_t methods_count = 6;
inline constexpr std::size_t float_dtypes_count = 4;  // Dtype's first four: f64, f32, f16, bf16

// The parameters of a step, computed in double and rounded once per call to the type of the computation.
struct Coefficients {
  double rate = 0;                         // of the step; for adam and adamw corrected for the bias of the first moment
  double first = 0;                        // mu, or beta1
  double second = 0;                       // beta2
  double first_rest = 0, second_rest = 0;  // 1 - beta1, 1 - beta2
  double root = 1;                         // 1 / sqrt(1 - beta2^t)
  double epsilon = 0;
  double decay = 0;  // weight decay; for adamw multiplied by the learning rate
  double scale = 1;  // factor of the gradient, from clipping by norm
  double limit = 0;  // of the magnitude of the scaled gradient's elements; infinity: none
};

struct StepArguments {
  std::byte* values = nullptr;
  std::byte const* gradient = nullptr;
  std::byte* master = nullptr;  // f32 copy of f16 and bf16 values
  std::byte* first = nullptr;   // state, if the method has any
  std::byte* second = nullptr;
  std::uint64_t elements = 0;
  Coefficients coefficients;
};

// The kernels of one instruction set. Plain arrays: see the note on weak symbols in devices/lanes.inc.
struct StepKernels {
  char const* name = nullptr;
  using StepLoop = void (*)(StepArguments const&);
  // Indexes: method, dtype, 1 if the gradient of f16 or bf16 is f32, 1 if the gradient is clipped or decayed first.
  StepLoop step[methods_count][float_dtypes_count][2][2] = {};
  // Add the squares of f64 and f32 to 16 partial sums, each of every 16th element.
  void (*squares[2])(std::byte const* at, std::uint64_t elements, double* sums16) = {};
  std::uint64_t (*count_nonfinite[float_dtypes_count])(std::byte const* at, std::uint64_t elements) = {};
  std::uint64_t (*zero_nonfinite[float_dtypes_count])(std::byte* at, std::uint64_t elements) = {};
};

[[nodiscard]] StepKernels const& baseline_kernels();
#if defined(__x86_64__)
[[nodiscard]] StepKernels const& avx2_kernels();
[[nodiscard]] StepKernels const& avx512_kernels();
#endif

// Returns the kernels that this processor can run, the fastest last; unused entries are null.
[[nodiscard]] std::array<StepKernels const*, 3> const& runnable_kernels();
[[nodiscard]] StepKernels const& best_kernels();

}  // namespace chorus::parameters
