// A step of an optimizer over device memory, as plain data: numbers and pointers only, so that the CUDA compiler reads
// it too. What the formulas are is said in docs/optimizers.md; the CPU's loops are in worker/parameters/optimizers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/core/dtype.hpp"

namespace chorus::devices {

enum class StepMethod : std::uint8_t { sgd, momentum, nesterov, adagrad, adam, adamw };

// The same for all elements. Rounded to the type of the computation once.
struct StepScalars {
  double rate = 0;
  double first = 0;                        // mu, or beta1
  double second = 0;                       // beta2
  double first_rest = 0, second_rest = 0;  // 1 - beta1, 1 - beta2
  double root = 1;                         // 1 / sqrt(1 - beta2^t)
  double epsilon = 0;
  double decay = 0;  // of adamw times the learning rate
  double scale = 1;  // of the gradient
  double limit = 0;  // of each element's magnitude after that; infinity: none
};

// Elements are f64 or f32, or f16 or bf16, which are computed with in f32 and have a master copy in it. State has the
// type of the computation. Addresses are those of the first element that is stepped, aligned to an element; no array
// overlaps another.
struct StepOrder {
  StepMethod method = StepMethod::sgd;
  Dtype dtype = Dtype::f32;      // of the values
  bool wide_gradient = false;    // f16, bf16: the gradient is f32
  bool shapes_gradient = false;  // by scale, limit and, but for adamw, decay; else it is taken as it is
  std::byte* values = nullptr;
  std::byte const* gradient = nullptr;
  std::byte* master = nullptr;  // of f16 and bf16
  std::byte* first = nullptr;   // all methods but sgd
  std::byte* second = nullptr;  // adam, adamw
  std::uint64_t elements = 0;
  StepScalars scalars;
};

}  // namespace chorus::devices
