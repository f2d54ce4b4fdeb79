// Reductions of single elements, written out as references for the kernels.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "collectives/core/reduce_op.hpp"

namespace chorus::devices {

template <class T>
T wrapped(unsigned __int128 x) {
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(x));
}

// Combines two numbers, neither of which is a NaN. Integers wrap.
template <class T>
T naive(ReduceOp op, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    auto const wide_a = static_cast<unsigned __int128>(static_cast<__int128>(a));
    auto const wide_b = static_cast<unsigned __int128>(static_cast<__int128>(b));
    if (op == ReduceOp::sum || op == ReduceOp::avg) return wrapped<T>(wide_a + wide_b);
    if (op == ReduceOp::prod) return wrapped<T>(wide_a * wide_b);
    if (op == ReduceOp::band) return static_cast<T>(a & b);
    if (op == ReduceOp::bor) return static_cast<T>(a | b);
    if (op == ReduceOp::bxor) return static_cast<T>(a ^ b);
  } else {
    if (op == ReduceOp::sum || op == ReduceOp::avg) return a + b;
    if (op == ReduceOp::prod) return a * b;
  }
  return op == ReduceOp::min ? std::min(a, b) : std::max(a, b);
}

// Divides a number, integers truncating towards zero.
template <class T>
T naive_quotient(T x, std::uint32_t divisor) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<__int128>(x) / divisor);
  else
    return x / static_cast<T>(divisor);
}

// Returns the value of an f16 number by IEEE 754, in exact arithmetic.
inline double half_value(std::uint16_t h) {
  int const exponent = (h >> 10) & 31;
  double const fraction = h & 1023;
  double const magnitude = exponent == 31  ? (fraction == 0 ? std::numeric_limits<double>::infinity() : std::nan(""))
                           : exponent == 0 ? std::ldexp(fraction, -24)
                                           : std::ldexp(1024 + fraction, exponent - 25);
  return (h & 0x8000) != 0 ? -magnitude : magnitude;
}

inline double brain_value(std::uint16_t b) { return std::bit_cast<float>(static_cast<std::uint32_t>(b) << 16); }

// A format of 16 bits: the value of a number, and the bits of infinity.
struct SmallFloat {
  double (*value_of)(std::uint16_t);
  std::uint16_t infinity;
};
inline constexpr SmallFloat f16_numbers{half_value, 0x7c00}, bf16_numbers{brain_value, 0x7f80};

// Rounds to the nearest number; of two to the even one.
inline std::uint16_t nearest(double exact, SmallFloat format) {
  std::uint16_t low = 0, high = format.infinity;
  double const magnitude = std::abs(exact);
  while (high - low > 1) {
    auto const middle = static_cast<std::uint16_t>((low + high) / 2);
    (format.value_of(middle) <= magnitude ? low : high) = middle;
  }
  // Above the largest number, the next one would be at the same gap.
  double const gap = format.value_of(low) - format.value_of(static_cast<std::uint16_t>(low - (low > 0)));
  double const above = high == format.infinity ? format.value_of(low) + gap : format.value_of(high);
  double const down = magnitude - format.value_of(low), up = above - magnitude;
  auto const chosen = down < up || (down == up && low % 2 == 0) ? low : high;
  return static_cast<std::uint16_t>(chosen | (std::signbit(exact) ? 0x8000 : 0));
}

}  // namespace chorus::devices
