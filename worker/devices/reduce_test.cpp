#include "worker/devices/reduce.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "worker/devices/kernels.hpp"

using namespace chorus;
using namespace chorus::devices;

namespace {

// Odd lengths and every remainder of a vector register.
constexpr std::array<std::size_t, 14> lengths{0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 127, 1003};

// Memory whose first element lies `shift` elements past a 64-byte boundary.
template <class T>
class Elements {
 public:
  Elements(std::size_t count, std::size_t shift) : bytes_((count + shift) * sizeof(T) + 64), count_(count) {
    auto const address = reinterpret_cast<std::uintptr_t>(bytes_.data());
    begin_ = reinterpret_cast<T*>(bytes_.data() + (64 - address % 64) % 64 + shift * sizeof(T));
  }
  [[nodiscard]] std::byte* bytes() { return reinterpret_cast<std::byte*>(begin_); }
  T& operator[](std::size_t i) { return begin_[i]; }
  [[nodiscard]] std::size_t size() const { return count_; }

 private:
  std::vector<std::byte> bytes_;
  T* begin_;
  std::size_t count_;
};

// Values over the whole range for integers, so that sums and products wrap; halves and signs for floats.
template <class T>
T value(std::uint64_t i) {
  auto const mixed = (i + 1) * 0x9e3779b97f4a7c15u;
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(mixed >> 17);
  else
    return static_cast<T>(static_cast<int>(mixed >> 40) % 1024) * T{0.5};
}

template <class T>
T wrapped(unsigned __int128 x) {
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(x));
}

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

enum class Into { other, left, right };

template <class T>
void check_combine(Combine kernel, ReduceOp op, std::size_t count, std::size_t shift, Into into) {
  Elements<T> a(count, shift), b(count, (shift * 3 + 1) % 5), other(count, (shift + 2) % 7);
  std::vector<T> expected(count);
  for (std::size_t i = 0; i < count; ++i) {
    a[i] = value<T>(i);
    b[i] = value<T>(i + 77);
    expected[i] = naive(op, a[i], b[i]);
  }
  auto& out = into == Into::left ? a : into == Into::right ? b : other;
  kernel(out.bytes(), a.bytes(), b.bytes(), count);
  REQUIRE((count == 0 || std::memcmp(out.bytes(), expected.data(), count * sizeof(T)) == 0));
}

template <class T>
void check_dtype(Dtype dtype) {
  for (auto const* kernels : runnable_kernels()) {
    if (kernels == nullptr) continue;
    for (auto op : all_reduce_ops) {
      CAPTURE(kernels->name);
      CAPTURE(name(op));
      CAPTURE(name(dtype));
      auto const kernel = kernels->combine[static_cast<std::size_t>(op)][static_cast<std::size_t>(dtype)];
      bool const is_bit_operation = op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor;
      REQUIRE((kernel == nullptr) == (is_bit_operation && !std::is_integral_v<T>));
      if (kernel == nullptr) continue;
      for (auto count : lengths)
        for (std::size_t shift = 0; shift < 5; ++shift)
          for (auto into : {Into::other, Into::left, Into::right}) check_combine<T>(kernel, op, count, shift, into);
    }
    auto const divide = kernels->divide[static_cast<std::size_t>(dtype)];
    for (auto count : lengths)
      for (std::uint32_t divisor : {1u, 3u, 7u, 16u}) {
        Elements<T> x(count, divisor % 4);
        std::vector<T> expected(count);
        for (std::size_t i = 0; i < count; ++i) {
          x[i] = value<T>(i);
          if constexpr (std::is_signed_v<T> && std::is_integral_v<T>)
            expected[i] = static_cast<T>(static_cast<__int128>(x[i]) / divisor);
          else
            expected[i] = static_cast<T>(x[i] / static_cast<T>(divisor));
        }
        divide(x.bytes(), count, divisor);
        REQUIRE((count == 0 || std::memcmp(x.bytes(), expected.data(), count * sizeof(T)) == 0));
      }
  }
}

template <class T>
T combined(ReduceOp op, Dtype dtype, T a, T b) {
  T out{};
  find_combine(op, dtype)(reinterpret_cast<std::byte*>(&out), reinterpret_cast<std::byte const*>(&a),
                          reinterpret_cast<std::byte const*>(&b), 1);
  return out;
}

// Returns the value of an f16 number by IEEE 754, in exact arithmetic.
double half_value(std::uint16_t h) {
  int const exponent = (h >> 10) & 31;
  double const fraction = h & 1023;
  double const magnitude = exponent == 31  ? (fraction == 0 ? std::numeric_limits<double>::infinity() : std::nan(""))
                           : exponent == 0 ? std::ldexp(fraction, -24)
                                           : std::ldexp(1024 + fraction, exponent - 25);
  return (h & 0x8000) != 0 ? -magnitude : magnitude;
}

double brain_value(std::uint16_t b) { return std::bit_cast<float>(static_cast<std::uint32_t>(b) << 16); }

// Rounds to the nearest number; of two to the even one.
std::uint16_t nearest(double exact, double (*value_of)(std::uint16_t), std::uint16_t infinity) {
  std::uint16_t low = 0, high = infinity;
  double const magnitude = std::abs(exact);
  while (high - low > 1) {
    auto const middle = static_cast<std::uint16_t>((low + high) / 2);
    (value_of(middle) <= magnitude ? low : high) = middle;
  }
  // Above the largest number, the next one would be at the same gap.
  double const gap = value_of(low) - value_of(static_cast<std::uint16_t>(low - (low > 0)));
  double const above = high == infinity ? value_of(low) + gap : value_of(high);
  double const down = magnitude - value_of(low), up = above - magnitude;
  auto const chosen = down < up || (down == up && low % 2 == 0) ? low : high;
  return static_cast<std::uint16_t>(chosen | (std::signbit(exact) ? 0x8000 : 0));
}

void check_small_floats(Dtype dtype, double (*value_of)(std::uint16_t), std::uint16_t infinity) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    auto const a = static_cast<std::uint16_t>(bits);
    if ((a & 0x7fff) > infinity) {
      REQUIRE((combined<std::uint16_t>(ReduceOp::sum, dtype, a, 0) & 0x7fff) > infinity);
      continue;
    }
    REQUIRE(combined<std::uint16_t>(ReduceOp::sum, dtype, a, 0x8000) == a);  // x + -0 is x
    auto const b = static_cast<std::uint16_t>((bits * 40503u >> 3) & 0xffff);
    if ((a & 0x7fff) == infinity || (b & 0x7fff) >= infinity) continue;
    // A sum in f32 may round once more than the exact one, so the sum in f32 is the reference.
    double const exact = static_cast<double>(static_cast<float>(value_of(a)) + static_cast<float>(value_of(b)));
    if (exact == 0) continue;
    REQUIRE(combined<std::uint16_t>(ReduceOp::sum, dtype, a, b) == nearest(exact, value_of, infinity));
  }
}

}  // namespace

TEST_CASE("every kernel of every instruction set equals the naive loop, at odd lengths, misaligned and in place") {
  check_dtype<double>(Dtype::f64);
  check_dtype<float>(Dtype::f32);
  check_dtype<std::int64_t>(Dtype::i64);
  check_dtype<std::int32_t>(Dtype::i32);
  check_dtype<std::int16_t>(Dtype::i16);
  check_dtype<std::int8_t>(Dtype::i8);
  check_dtype<std::uint64_t>(Dtype::u64);
  check_dtype<std::uint32_t>(Dtype::u32);
  check_dtype<std::uint16_t>(Dtype::u16);
  check_dtype<std::uint8_t>(Dtype::u8);
}

TEST_CASE("a NaN on either side of min and max stays a NaN") {
  auto const nan = std::numeric_limits<double>::quiet_NaN();
  for (auto op : {ReduceOp::min, ReduceOp::max}) {
    CHECK(std::isnan(combined(op, Dtype::f64, nan, 1.0)));
    CHECK(std::isnan(combined(op, Dtype::f64, 1.0, nan)));
    CHECK(std::isnan(combined(op, Dtype::f32, static_cast<float>(nan), 1.0f)));
    CHECK(std::isnan(combined(op, Dtype::f32, 1.0f, static_cast<float>(nan))));
  }
}

TEST_CASE("min and max of NaNs, infinities and signed zeros are the same bits in vectors and in scalars") {
  constexpr std::array<std::uint32_t, 10> special{0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000,
                                                  0xff800000, 0x7fc00000, 0xffc01234, 0x00000001, 0x807fffff};
  for (auto const* kernels : runnable_kernels()) {
    if (kernels == nullptr) continue;
    CAPTURE(kernels->name);
    for (auto const op : {ReduceOp::min, ReduceOp::max}) {
      auto const kernel = kernels->combine[static_cast<std::size_t>(op)][static_cast<std::size_t>(Dtype::f32)];
      for (auto const a : special)
        for (auto const b : special) {
          auto const x = std::bit_cast<float>(a), y = std::bit_cast<float>(b);
          bool const is_left = std::isnan(x) || (op == ReduceOp::min ? x < y : x > y);
          std::vector<std::uint32_t> const left(35, a), right(35, b), expected(35, is_left ? a : b);
          std::vector<std::uint32_t> result(35);
          kernel(reinterpret_cast<std::byte*>(result.data()), reinterpret_cast<std::byte const*>(left.data()),
                 reinterpret_cast<std::byte const*>(right.data()), result.size());
          REQUIRE(result == expected);
        }
    }
  }
}

TEST_CASE("every f16 and bf16 value survives, and sums round to the nearest even neighbour") {
  check_small_floats(Dtype::f16, half_value, 0x7c00);
  check_small_floats(Dtype::bf16, brain_value, 0x7f80);
}

TEST_CASE("the average of small integers truncates towards zero") {
  std::array<std::int32_t, 4> x{7, -7, 8, -1};
  find_divide(Dtype::i32)(reinterpret_cast<std::byte*>(x.data()), x.size(), 4);
  CHECK(x == std::array<std::int32_t, 4>{1, -1, 2, 0});
}
