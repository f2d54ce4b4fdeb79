// Optimizer steps as somebody would write them by hand for one processor: what those of parameters/optimizers are held
// against. In the same order of operations, without fused ones, so that the bits are comparable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace chorus::bench {

// Of f32, everything given; elements is a multiple of 64.
struct HandWrittenStep {
  std::string_view optimizer;
  std::size_t arrays_read, arrays_written;  // of `elements` f32 each
  void (*loop)(float* values, float const* gradient, float* first, float* second, std::uint64_t elements, double step);
};

// The settings by which the loops step.
struct HandWrittenSettings {
  static constexpr double learning_rate = 0.01, momentum = 0.9, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  static constexpr double weight_decay = 0.01;  // of adamw
};

// With AVX-512 or AVX2 intrinsics, whichever this processor has; empty without either.
[[nodiscard]] std::vector<HandWrittenStep> hand_written_steps();

}  // namespace chorus::bench
