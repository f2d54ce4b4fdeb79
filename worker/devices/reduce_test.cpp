#include "worker/devices/reduce.hpp"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "worker/devices/kernels.hpp"
#include "worker/devices/testing/scalar_reductions.hpp"

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

// The kernels of one instruction set for one dtype.
class KernelsOf {
 public:
  KernelsOf(Kernels const& kernels, Dtype dtype) : kernels_(kernels), dtype_(dtype) {}
  [[nodiscard]] Reducer::Kernel find(ReduceOp op) const {
    return kernels_.reduce[static_cast<std::size_t>(op)][static_cast<std::size_t>(dtype_)];
  }
  void combine(ReduceOp op, std::byte* to, std::byte const* a, std::byte const* b, std::size_t count) const {
    std::byte const* const sources[] = {a, b};
    find(op)({sources, 2, &to, 1, count}, {});
  }
  void divide(std::byte* x, std::size_t count, std::uint32_t divisor) const {
    std::byte const* const source = x;
    find(ReduceOp::avg)({&source, 1, &x, 1, count}, {.divisor = divisor});
  }

 private:
  Kernels const& kernels_;
  Dtype dtype_;
};

enum class Into { other, left, right };

template <class T>
void check_combine(KernelsOf const& kernels, ReduceOp op, std::size_t count, std::size_t shift, Into into) {
  Elements<T> a(count, shift), b(count, (shift * 3 + 1) % 5), other(count, (shift + 2) % 7);
  std::vector<T> expected(count);
  for (std::size_t i = 0; i < count; ++i) {
    a[i] = value<T>(i);
    b[i] = value<T>(i + 77);
    expected[i] = naive(op, a[i], b[i]);
  }
  auto& out = into == Into::left ? a : into == Into::right ? b : other;
  kernels.combine(op, out.bytes(), a.bytes(), b.bytes(), count);
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
      bool const is_bit_operation = op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor;
      KernelsOf const tested(*kernels, dtype);
      REQUIRE((tested.find(op) == nullptr) == (is_bit_operation && !std::is_integral_v<T>));
      if (tested.find(op) == nullptr) continue;
      for (auto count : lengths)
        for (std::size_t shift = 0; shift < 5; ++shift)
          for (auto into : {Into::other, Into::left, Into::right}) check_combine<T>(tested, op, count, shift, into);
    }
    for (auto count : lengths)
      for (std::uint32_t divisor : {1u, 3u, 7u, 16u}) {
        Elements<T> x(count, divisor % 4);
        std::vector<T> expected(count);
        for (std::size_t i = 0; i < count; ++i) {
          x[i] = value<T>(i);
          expected[i] = naive_quotient(x[i], divisor);
        }
        KernelsOf(*kernels, dtype).divide(x.bytes(), count, divisor);
        REQUIRE((count == 0 || std::memcmp(x.bytes(), expected.data(), count * sizeof(T)) == 0));
      }
  }
}

template <class T>
T combined(ReduceOp op, Dtype dtype, T a, T b) {
  T out{};
  KernelsOf(best_kernels(), dtype)
      .combine(op, reinterpret_cast<std::byte*>(&out), reinterpret_cast<std::byte const*>(&a),
               reinterpret_cast<std::byte const*>(&b), 1);
  return out;
}

void check_small_floats(Dtype dtype, SmallFloat format) {
  auto const [value_of, infinity] = format;
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
    REQUIRE(combined<std::uint16_t>(ReduceOp::sum, dtype, a, b) == nearest(exact, format));
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
      for (auto const a : special)
        for (auto const b : special) {
          auto const x = std::bit_cast<float>(a), y = std::bit_cast<float>(b);
          bool const is_left = std::isnan(x) || (op == ReduceOp::min ? x < y : x > y);
          std::vector<std::uint32_t> const left(35, a), right(35, b), expected(35, is_left ? a : b);
          std::vector<std::uint32_t> result(35);
          KernelsOf(*kernels, Dtype::f32)
              .combine(op, reinterpret_cast<std::byte*>(result.data()), reinterpret_cast<std::byte const*>(left.data()),
                       reinterpret_cast<std::byte const*>(right.data()), result.size());
          REQUIRE(result == expected);
        }
    }
  }
}

TEST_CASE("every f16 and bf16 value survives, and sums round to the nearest even neighbour") {
  check_small_floats(Dtype::f16, f16_numbers);
  check_small_floats(Dtype::bf16, bf16_numbers);
}

TEST_CASE("the average of small integers truncates towards zero") {
  std::array<std::int32_t, 4> x{7, -7, 8, -1};
  KernelsOf(best_kernels(), Dtype::i32).divide(reinterpret_cast<std::byte*>(x.data()), x.size(), 4);
  CHECK(x == std::array<std::int32_t, 4>{1, -1, 2, 0});
}
