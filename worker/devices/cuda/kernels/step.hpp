// An optimizer step over device memory as plain data, which the CUDA compiler reads, too. docs/reference/optimizers.md
// has the formulas; the CPU's loops are in worker/parameters/optimizers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/core/dtype.hpp"

namespace chorus::devices {

enum class StepMethod : std::uint8_t { sgd, momentum, nesterov, adagrad, adam, adamw };

// The parameters of a step, the same for all elements. Rounded once to the type of the computation.
struct StepScalars {
  double rate = 0;
  double first = 0;                        // mu, or beta1
  double second = 0;                       // beta2
  double first_rest = 0, second_rest = 0;  // 1 - beta1, 1 - beta2
  double root = 1;                         // 1 / sqrt(1 - beta2^t)
  double epsilon = 0;
  double decay = 0;  // for adamw multiplied by the learning rate
  double scale = 1;  // factor of the gradient
  double limit = 0;  // of the magnitude of the scaled gradient's elements; infinity: none
};

// Elements are f64 or f32, or f16 or bf16, which are computed in f32 and have a master copy in f32. State has the type
// of the computation. Addresses are those of the first element to step, aligned to an element. Arrays do not overlap.
struct StepOrder {
  StepMethod method = StepMethod::sgd;
  Dtype dtype = Dtype::f32;      // of the values
  bool wide_gradient = false;    // f16, bf16: the gradient is f32
  bool shapes_gradient = false;  // apply scale, limit and, except for adamw, decay to the gradient
  std::byte* values = nullptr;
  std::byte const* gradient = nullptr;
  std::byte* master = nullptr;  // for f16 and bf16
  std::byte* first = nullptr;   // for all methods except sgd
  std::byte* second = nullptr;  // for adam and adamw
  std::uint64_t elements = 0;
  StepScalars scalars;
};

}  // namespace chorus::devices
