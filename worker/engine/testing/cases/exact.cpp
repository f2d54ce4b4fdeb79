#include "worker/engine/testing/cases/exact.hpp"

#include <bit>
#include <climits>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "collectives/core/assert.hpp"

namespace chorus::engine::testing {
namespace {

constexpr std::uint32_t exact_up_to_ranks = 16;

// Rounds to so many binary digits, half to even. Avoids the bit tricks of the kernels that the suite checks.
float rounded(float x, int digits) {
  int exponent = 0;
  auto const fraction = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, digits)), exponent - digits);
}

struct Half {  // f16 without subnormals and infinities
  std::uint16_t bits = 0;
  static Half from(float x) {
    int exponent = 0;
    auto const fraction = std::frexp(std::abs(rounded(x, 11)), &exponent);
    auto const sign = std::signbit(x) ? 0x8000u : 0u;
    if (fraction == 0) return {static_cast<std::uint16_t>(sign)};
    auto const mantissa = static_cast<std::uint32_t>(std::ldexp(fraction, 11)) - 1024;
    return {static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(exponent + 14) << 10 | mantissa)};
  }
};

struct Brain {  // bf16
  std::uint16_t bits = 0;
  static Brain from(float x) { return {static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(rounded(x, 8)) >> 16)}; }
};

// How numbers of a dtype are computed and stored.
template <class Computed, class Stored = Computed>
struct Numbers {
  using Number = Computed;
  static Stored stored(Number x) {
    if constexpr (std::is_same_v<Computed, Stored>)
      return x;
    else
      return Stored::from(x);
  }
};

template <class Function>
auto with_numbers(Dtype dtype, Function function) {
  switch (dtype) {
    case Dtype::f64:
      return function(Numbers<double>{});
    case Dtype::f32:
      return function(Numbers<float>{});
    case Dtype::f16:
      return function(Numbers<float, Half>{});
    case Dtype::bf16:
      return function(Numbers<float, Brain>{});
    case Dtype::i64:
      return function(Numbers<std::int64_t>{});
    case Dtype::i32:
      return function(Numbers<std::int32_t>{});
    case Dtype::i16:
      return function(Numbers<std::int16_t>{});
    case Dtype::i8:
      return function(Numbers<std::int8_t>{});
    case Dtype::u64:
      return function(Numbers<std::uint64_t>{});
    case Dtype::u32:
      return function(Numbers<std::uint32_t>{});
    case Dtype::u16:
      return function(Numbers<std::uint16_t>{});
    case Dtype::u8:
    case Dtype::int8_block:
    case Dtype::fp8_block:
      break;
  }
  return function(Numbers<std::uint8_t>{});
}

template <class T>
T integer(ReduceOp reduce, plan::Rank rank, std::uint64_t i) {
  auto const mixed = ((i + 1) * 0x9e3779b97f4a7c15u + (rank + 1) * 0xd1b54a32d192ed03u) * 0xbf58476d1ce4e5b9u >> 7;
  auto const one_bit = static_cast<T>(std::uint64_t{1} << mixed % (sizeof(T) * CHAR_BIT));
  if (reduce == ReduceOp::band) return static_cast<T>(~one_bit);
  if (reduce == ReduceOp::bor) return one_bit;
  return static_cast<T>(reduce == ReduceOp::prod ? mixed | 1 : mixed);  // a product of odd numbers keeps all bits
}

template <class T>
T value(ReduceOp reduce, plan::Rank rank, std::uint64_t i) {
  if constexpr (std::is_integral_v<T>)
    return integer<T>(reduce, rank, i);
  else if (reduce == ReduceOp::prod)
    return static_cast<T>((i + rank) % 5 == 0 ? 2 : (i + 3 * rank) % 4 == 0 ? -1 : 1);
  else
    return static_cast<T>(static_cast<int>((i * 7 + rank * 13 + i / 11) % 31) - 15);
}

template <class T>
T combined(ReduceOp reduce, T a, T b) {
  if (reduce == ReduceOp::min) return std::min(a, b);
  if (reduce == ReduceOp::max) return std::max(a, b);
  if constexpr (std::is_integral_v<T>) {
    auto const x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    if (reduce == ReduceOp::band) return static_cast<T>(x & y);
    if (reduce == ReduceOp::bor) return static_cast<T>(x | y);
    if (reduce == ReduceOp::bxor) return static_cast<T>(x ^ y);
    return static_cast<T>(reduce == ReduceOp::prod ? x * y : x + y);
  } else {
    return reduce == ReduceOp::prod ? a * b : a + b;
  }
}

template <class T>
T divided(T sum, std::uint32_t ranks) {
  if constexpr (std::is_same_v<T, std::uint64_t>)
    return sum / ranks;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::int64_t>(sum) / ranks);
  else
    return sum / static_cast<T>(ranks);
}

template <class Numbers, class NumberAt>
std::vector<std::byte> bytes_of(Numbers, std::uint64_t elements, NumberAt number_at) {
  using Stored = decltype(Numbers::stored({}));
  std::vector<std::byte> bytes(elements * sizeof(Stored));
  for (std::uint64_t i = 0; i < elements; ++i) {
    auto const stored = Numbers::stored(number_at(i));
    std::memcpy(bytes.data() + i * sizeof(Stored), &stored, sizeof(Stored));
  }
  return bytes;
}

}  // namespace

std::vector<std::byte> exact_values(Dtype dtype, ReduceOp reduce, plan::Rank rank, std::uint64_t elements) {
  return with_numbers(dtype, [&](auto numbers) {
    using Number = typename decltype(numbers)::Number;
    return bytes_of(numbers, elements, [&](std::uint64_t i) { return value<Number>(reduce, rank, i); });
  });
}

std::vector<std::byte> exact_results(Dtype dtype, ReduceOp reduce, std::uint32_t ranks, std::uint64_t elements) {
  CHORUS_ASSERT(ranks <= exact_up_to_ranks, "sums of more ranks are rounded in bf16");
  return with_numbers(dtype, [&](auto numbers) {
    using Number = typename decltype(numbers)::Number;
    return bytes_of(numbers, elements, [&](std::uint64_t i) {
      auto result = value<Number>(reduce, 0, i);
      for (plan::Rank rank = 1; rank < ranks; ++rank) result = combined(reduce, result, value<Number>(reduce, rank, i));
      return reduce == ReduceOp::avg ? divided(result, ranks) : result;
    });
  });
}

}  // namespace chorus::engine::testing
