// The operations of reductions on single elements, and the division of averages.
#pragma once

#include <cstdint>

#include "worker/devices/cuda/kernels/packs.cuh"

namespace chorus::devices::cuda {
namespace {

// Integers are summed and multiplied in unsigned types of at least 32 bits, which wrap.
struct Sum {
  static constexpr bool divides = false;
  template <class T>
  static __device__ T apply(T a, T b) {
    return static_cast<T>(a + b);
  }
};
struct Prod {
  static constexpr bool divides = false;
  template <class T>
  static __device__ T apply(T a, T b) {
    if constexpr (is_same<T, std::uint16_t> || is_same<T, std::uint8_t>)
      return static_cast<T>(static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b));
    else
      return a * b;
  }
};
// Signed integers are added as unsigned ones and divided as signed ones.
struct Avg {
  static constexpr bool divides = true;
  static __device__ float apply(float a, float b) { return a + b; }
  static __device__ double apply(double a, double b) { return a + b; }
  template <class T>
  static __device__ T apply(T a, T b) {
    if constexpr (sizeof(T) == 8)
      return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    else
      return static_cast<T>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
  }
};
// `x != x` is true for a NaN only; a NaN on the right fails the comparison and is taken.
struct Min {
  static constexpr bool divides = false;
  template <class T>
  static __device__ T apply(T a, T b) {
    return (a < b) || (a != a) ? a : b;
  }
};
struct Max {
  static constexpr bool divides = false;
  template <class T>
  static __device__ T apply(T a, T b) {
    return (a > b) || (a != a) ? a : b;
  }
};
struct Band {
  static constexpr bool divides = false;
  template <class T>
  static __device__ T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Bor {
  static constexpr bool divides = false;
  template <class T>
  static __device__ T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Bxor {
  static constexpr bool divides = false;
  template <class T>
  static __device__ T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

template <class T>
__device__ T divided(T x, std::uint32_t divisor, float scale) {
  if constexpr (is_same<T, float> || is_same<T, double>)
    return x / (static_cast<T>(divisor) / static_cast<T>(scale));
  else if constexpr (T(-1) < T(0))
    return static_cast<T>(static_cast<std::int64_t>(x) / static_cast<std::int64_t>(divisor));
  else
    return static_cast<T>(static_cast<std::uint64_t>(x) / divisor);
}

}  // namespace
}  // namespace chorus::devices::cuda
