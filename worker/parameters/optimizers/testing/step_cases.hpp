// Test cases for the kernels of optimizers on CPU and GPU.
#pragma once

#include <array>
#include <cstring>
#include <limits>
#include <vector>

#include "worker/parameters/optimizers/kernels.hpp"

namespace chorus::parameters::testing {

inline constexpr std::array float_dtypes{Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16};

inline bool is_half(Dtype dtype) { return dtype == Dtype::f16 || dtype == Dtype::bf16; }

// A number of this dtype in (-2, 2).
inline void put_number(Dtype dtype, std::byte* at, std::uint64_t i, bool positive) {
  auto const mixed = (i + 1) * 0x9e3779b97f4a7c15u;
  auto value = static_cast<double>(static_cast<std::int64_t>(mixed) >> 12) * 0x1p-50;
  if (positive && value < 0) value = -value;
  auto const single = static_cast<float>(value);
  // Bits of f16 and bf16 with a highest exponent bit of 0.
  auto const half = static_cast<std::uint16_t>((positive ? 0 : mixed >> 63 << 15) | ((mixed >> 20) & 0x3fff));
  if (dtype == Dtype::f64) std::memcpy(at, &value, sizeof value);
  if (dtype == Dtype::f32) std::memcpy(at, &single, sizeof single);
  if (is_half(dtype)) std::memcpy(at, &half, sizeof half);
}

// Elements that begin `shift` elements past a 64-byte boundary.
class Numbers {
 public:
  Numbers(Dtype dtype, std::size_t count, std::size_t shift, std::uint64_t seed, bool positive = false)
      : size_(element_bytes(dtype)), count_(count), memory_((count + shift) * size_ + 64) {
    auto const misfit = (64 - reinterpret_cast<std::uintptr_t>(memory_.data()) % 64) % 64;
    begin_ = memory_.data() + misfit + shift * size_;
    for (std::size_t i = 0; i < count; ++i) put_number(dtype, begin_ + i * size_, seed + i, positive);
  }
  [[nodiscard]] std::byte* at(std::size_t element = 0) { return begin_ + element * size_; }
  [[nodiscard]] std::vector<std::byte> copy() const { return {begin_, begin_ + count_ * size_}; }

 private:
  std::size_t size_, count_;
  std::vector<std::byte> memory_;
  std::byte* begin_;
};

inline Coefficients some_coefficients(bool shapes) {
  Coefficients c;
  c.rate = 0.1;
  c.first = 0.9;
  c.second = 0.99;
  c.first_rest = 0.1;
  c.second_rest = 0.01;
  c.root = 3;
  c.epsilon = 1e-6;
  c.decay = 0.01;
  c.scale = shapes ? 0.75 : 1;
  c.limit = shapes ? 0.5 : std::numeric_limits<double>::infinity();
  return c;
}

// One kernel.
struct StepCase {
  std::size_t method;
  Dtype dtype;
  bool wide_gradient, shapes;
};

template <class Check>
void for_each_case(Check const& check) {
  for (std::size_t method = 0; method < methods_count; ++method)
    for (auto const dtype : float_dtypes)
      for (bool const wide : {false, true})
        for (bool const shapes : {false, true})
          if (!wide || is_half(dtype)) check(StepCase{method, dtype, wide, shapes});
}

}  // namespace chorus::parameters::testing
