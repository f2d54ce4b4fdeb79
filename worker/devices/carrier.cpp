#include "worker/devices/carrier.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "collectives/core/assert.hpp"
#include "worker/devices/reduce.hpp"

namespace chorus::devices {
namespace {

// The most numbers of 8 or 16 bits whose sum fits 32 bits.
constexpr std::uint64_t summands_in_32_bits = 65536;

// A 64-bit integer is carried as its upper and its lower half, each in 64 bits: sums of up to 2^31 halves fit.
constexpr unsigned half_bits = 32;
constexpr std::uint64_t lower_half = 0xffffffffu;

template <class T>
T at(std::byte const* base, std::uint64_t i) {
  T value;
  std::memcpy(&value, base + i * sizeof(T), sizeof(T));
  return value;
}
template <class T>
void put(std::byte* base, std::uint64_t i, T value) {
  std::memcpy(base + i * sizeof(T), &value, sizeof(T));
}

template <class From, class To>
void convert(std::byte* to, std::byte const* from, std::uint64_t elements) {
  for (std::uint64_t i = 0; i < elements; ++i) put(to, i, static_cast<To>(at<From>(from, i)));
}

// T is std::int64_t or std::uint64_t. Shifting a negative number keeps its sign.
template <class T>
void split(std::byte* to, std::byte const* from, std::uint64_t elements) {
  for (std::uint64_t i = 0; i < elements; ++i) {
    auto const x = at<T>(from, i);
    put(to, 2 * i, static_cast<T>(x >> half_bits));
    put(to, 2 * i + 1, static_cast<T>(static_cast<std::uint64_t>(x) & lower_half));
  }
}

template <class T>
void join(std::byte* to, std::byte const* sums, std::uint64_t elements, std::uint32_t divisor) {
  for (std::uint64_t i = 0; i < elements; ++i) {
    auto const sum = static_cast<__int128>(at<T>(sums, 2 * i)) * (static_cast<__int128>(1) << half_bits) +
                     static_cast<__int128>(at<T>(sums, 2 * i + 1));
    bool const is_short = sum == static_cast<__int128>(static_cast<T>(sum));
    put(to, i,
        is_short ? static_cast<T>(static_cast<T>(sum) / static_cast<T>(divisor)) : static_cast<T>(sum / divisor));
  }
}

// An f64 is carried as its upper and its lower bits, each in an f64. Sums of up to 2^21 equal halves are exact. Only
// the upper half is scaled, which loses none of its bits: it is a multiple of 2^32 times the smallest number.
void split_floats(std::byte* to, std::byte const* from, std::uint64_t elements, double scale) {
  for (std::uint64_t i = 0; i < elements; ++i) {
    auto const x = at<double>(from, i);
    bool const is_finite = std::isfinite(x);
    auto const upper = is_finite ? std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & ~lower_half) : x;
    put(to, 2 * i, upper / scale);
    put(to, 2 * i + 1, upper != x && is_finite ? x - upper : std::copysign(0.0, x));
  }
}

// Divides the sum of both halves without rounding it first: what the sum rounds to is divided, and the quotient is
// corrected by that of the remainder and of what rounding the sum has lost (Knuth's TwoSum). Large sums stay scaled
// until they are divided.
double quotient_of_halves(double upper, double lower, double scale, double divisor) {
  constexpr double large = 0x1p900;
  bool const is_large = std::abs(upper) > large;
  if (is_large)
    lower /= scale;
  else
    upper *= scale;
  auto const sum = upper + lower;
  auto const added = sum - upper;
  auto const lost = (upper - (sum - added)) + (lower - added);
  auto const quotient = sum / divisor;
  auto const rest = std::fma(-quotient, divisor, sum) + lost;
  auto const result = rest != 0 && std::isfinite(rest) ? quotient + rest / divisor : quotient;  // keeps -0
  return is_large ? result * scale : result;
}

void join_floats(std::byte* to, std::byte const* sums, std::uint64_t elements, double scale, std::uint32_t divisor) {
  for (std::uint64_t i = 0; i < elements; ++i)
    put(to, i, quotient_of_halves(at<double>(sums, 2 * i), at<double>(sums, 2 * i + 1), scale, divisor));
}

void divide_doubles(std::byte* to, std::byte const* sums, std::uint64_t elements, std::uint32_t divisor) {
  for (std::uint64_t i = 0; i < elements; ++i) put(to, i, static_cast<float>(at<double>(sums, i) / divisor));
}

template <class Narrow, class Short, class Long>
void widen_integers(Dtype carried, std::byte* to, std::byte const* from, std::uint64_t elements) {
  if (element_bytes(carried) == sizeof(Short)) return convert<Narrow, Short>(to, from, elements);
  convert<Narrow, Long>(to, from, elements);
}

template <class Narrow, class Short, class Long>
void narrow_integers(Dtype carried, std::byte* to, std::byte* sums, std::uint64_t elements, std::uint32_t divisor) {
  std::byte const* const source = sums;
  Reducer(ReduceOp::avg, carried).run({&source, 1, &sums, 1, elements}, {.divisor = divisor});
  if (element_bytes(carried) == sizeof(Short)) return convert<Short, Narrow>(to, sums, elements);
  convert<Long, Narrow>(to, sums, elements);
}

}  // namespace

Carrier Carrier::of(Dtype dtype, std::uint64_t summands) {
  bool const is_few = summands <= summands_in_32_bits;
  switch (dtype) {
    case Dtype::f64:
      return Carrier(dtype, dtype, 2, scale_of_average(dtype, summands));
    case Dtype::f32:
      return Carrier(dtype, Dtype::f64, 1, 1);
    case Dtype::f16:
    case Dtype::bf16:
      return Carrier(dtype, Dtype::f32, 1, scale_of_average(dtype, summands));
    case Dtype::i8:
    case Dtype::i16:
      return Carrier(dtype, is_few ? Dtype::i32 : Dtype::i64, 1, 1);
    case Dtype::u8:
    case Dtype::u16:
      return Carrier(dtype, is_few ? Dtype::u32 : Dtype::u64, 1, 1);
    case Dtype::i32:
      return Carrier(dtype, Dtype::i64, 1, 1);
    case Dtype::u32:
      return Carrier(dtype, Dtype::u64, 1, 1);
    case Dtype::i64:
    case Dtype::u64:
      return Carrier(dtype, dtype, 2, 1);
    case Dtype::int8_block:
    case Dtype::fp8_block:
      break;
  }
  CHORUS_ASSERT(false, "a dtype");
  return Carrier(dtype, dtype, 1, 1);
}

Carrier Carrier::scaled(Dtype dtype, std::uint64_t summands) {
  CHORUS_ASSERT(dtype == Dtype::f64 || dtype == Dtype::f32, "floats that are carried in their own dtype");
  return Carrier(dtype, dtype, 1, scale_of_average(dtype, summands));
}

void Carrier::widen(std::span<std::byte> to, std::span<std::byte const> from) const {
  auto const elements = from.size() / element_bytes(dtype_);
  CHORUS_ASSERT(to.size() == bytes(elements), "as many elements on both sides");
  switch (dtype_) {
    case Dtype::i8:
      return widen_integers<std::int8_t, std::int32_t, std::int64_t>(carried_, to.data(), from.data(), elements);
    case Dtype::u8:
      return widen_integers<std::uint8_t, std::uint32_t, std::uint64_t>(carried_, to.data(), from.data(), elements);
    case Dtype::i16:
      return widen_integers<std::int16_t, std::int32_t, std::int64_t>(carried_, to.data(), from.data(), elements);
    case Dtype::u16:
      return widen_integers<std::uint16_t, std::uint32_t, std::uint64_t>(carried_, to.data(), from.data(), elements);
    case Dtype::i32:
      return convert<std::int32_t, std::int64_t>(to.data(), from.data(), elements);
    case Dtype::u32:
      return convert<std::uint32_t, std::uint64_t>(to.data(), from.data(), elements);
    case Dtype::i64:
      return split<std::int64_t>(to.data(), from.data(), elements);
    case Dtype::u64:
      return split<std::uint64_t>(to.data(), from.data(), elements);
    case Dtype::f64:
    case Dtype::f32:
      if (carried_ != dtype_) return convert<float, double>(to.data(), from.data(), elements);
      if (parts_ == 2) return split_floats(to.data(), from.data(), elements, scale_);
      [[fallthrough]];
    case Dtype::f16:
    case Dtype::bf16: {
      auto const* const source = from.data();
      auto* const destination = to.data();
      auto const weight = 1 / scale_;
      return Reducer(ReduceOp::avg, dtype_)
          .run({&source, 1, &destination, 1, elements}, {.weights = &weight, .wide_results = is_summed_in_f32(dtype_)});
    }
    case Dtype::int8_block:
    case Dtype::fp8_block:
      break;
  }
}

void Carrier::narrow(std::span<std::byte> to, std::span<std::byte> sums, std::uint32_t divisor) const {
  auto const elements = to.size() / element_bytes(dtype_);
  CHORUS_ASSERT(sums.size() == bytes(elements), "as many elements on both sides");
  switch (dtype_) {
    case Dtype::i8:
      return narrow_integers<std::int8_t, std::int32_t, std::int64_t>(carried_, to.data(), sums.data(), elements,
                                                                      divisor);
    case Dtype::u8:
      return narrow_integers<std::uint8_t, std::uint32_t, std::uint64_t>(carried_, to.data(), sums.data(), elements,
                                                                         divisor);
    case Dtype::i16:
      return narrow_integers<std::int16_t, std::int32_t, std::int64_t>(carried_, to.data(), sums.data(), elements,
                                                                       divisor);
    case Dtype::u16:
      return narrow_integers<std::uint16_t, std::uint32_t, std::uint64_t>(carried_, to.data(), sums.data(), elements,
                                                                          divisor);
    case Dtype::i32:
      return narrow_integers<std::int32_t, std::int64_t, std::int64_t>(carried_, to.data(), sums.data(), elements,
                                                                       divisor);
    case Dtype::u32:
      return narrow_integers<std::uint32_t, std::uint64_t, std::uint64_t>(carried_, to.data(), sums.data(), elements,
                                                                          divisor);
    case Dtype::i64:
      return join<std::int64_t>(to.data(), sums.data(), elements, divisor);
    case Dtype::u64:
      return join<std::uint64_t>(to.data(), sums.data(), elements, divisor);
    case Dtype::f64:
    case Dtype::f32:
      if (carried_ != dtype_) return divide_doubles(to.data(), sums.data(), elements, divisor);
      if (parts_ == 2) return join_floats(to.data(), sums.data(), elements, scale_, divisor);
      [[fallthrough]];
    case Dtype::f16:
    case Dtype::bf16: {
      std::byte const* const source = sums.data();
      auto* const destination = to.data();
      return Reducer(ReduceOp::avg, dtype_)
          .run({&source, 1, &destination, 1, elements},
               {.divisor = divisor, .scale = scale_, .wide_source = is_summed_in_f32(dtype_)});
    }
    case Dtype::int8_block:
    case Dtype::fp8_block:
      break;
  }
}

}  // namespace chorus::devices
