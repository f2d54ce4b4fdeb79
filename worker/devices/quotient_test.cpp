// The last step of avg gives the result of a division, for all numbers and numbers of ranks.
#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "worker/devices/kernels.hpp"

using namespace chorus;
using namespace chorus::devices;

namespace {

// Every small number of ranks, and those at which the method of division changes.
std::vector<std::uint32_t> divisors() {
  std::vector<std::uint32_t> all;
  for (std::uint32_t d = 1; d <= 300; ++d) all.push_back(d);
  for (unsigned bit = 9; bit < 32; ++bit)
    for (auto const d : {(1u << bit) - 1, 1u << bit, (1u << bit) + 1}) all.push_back(d);
  for (auto const d : {641u, 1000u, 10007u, 6700417u, 2863311531u, 4294967295u}) all.push_back(d);
  return all;
}

// Divides numbers in place.
template <class T>
void divide(Kernels const& kernels, Dtype dtype, std::span<T> numbers, std::uint32_t divisor) {
  auto* const to = std::as_writable_bytes(numbers).data();
  std::byte const* const from = to;
  kernels.reduce[static_cast<std::size_t>(ReduceOp::avg)][static_cast<std::size_t>(dtype)](
      {&from, 1, &to, 1, numbers.size()}, {.divisor = divisor});
}

template <class T>
std::vector<T> all_numbers() {
  std::vector<T> all;
  for (std::int64_t x = std::numeric_limits<T>::min(); x <= std::numeric_limits<T>::max(); ++x)
    all.push_back(static_cast<T>(x));
  return all;
}

// Numbers at which a quotient changes, for the largest and the smallest quotients; powers of two; and random numbers.
template <class T>
std::vector<T> telling_numbers(std::uint32_t divisor) {
  using Unsigned = std::make_unsigned_t<T>;
  std::vector<T> some;
  auto const around = [&](Unsigned x) {
    for (Unsigned by = 0; by < 3; ++by) {
      some.push_back(static_cast<T>(x - 1 + by));
      some.push_back(static_cast<T>(Unsigned{0} - (x - 1 + by)));
    }
  };
  auto const by = static_cast<Unsigned>(divisor);
  for (auto const limit : {std::numeric_limits<Unsigned>::max(), static_cast<Unsigned>(std::numeric_limits<T>::max()),
                           static_cast<Unsigned>(std::numeric_limits<T>::min())})
    for (Unsigned back = 0; back < 3 && limit / by >= back; ++back)
      around(static_cast<Unsigned>((limit / by - back) * by));
  for (Unsigned quotient = 0; quotient < 3; ++quotient) around(static_cast<Unsigned>(quotient * by));
  for (unsigned bit = 0; bit < 8 * sizeof(T); ++bit) around(static_cast<Unsigned>(Unsigned{1} << bit));
  std::mt19937_64 random(divisor);
  for (int i = 0; i < 2000; ++i) some.push_back(static_cast<T>(random() >> (random() % (8 * sizeof(T)))));
  return some;
}

template <class T>
void check(Dtype dtype, std::vector<T> const& numbers, std::uint32_t divisor) {
  using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  std::vector<T> expected;
  for (auto const x : numbers) expected.push_back(static_cast<T>(static_cast<Wide>(x) / static_cast<Wide>(divisor)));
  for (auto const* kernels : runnable_kernels()) {
    if (kernels == nullptr) continue;
    CAPTURE(kernels->name);
    CAPTURE(name(dtype));
    CAPTURE(divisor);
    auto result = numbers;
    divide<T>(*kernels, dtype, result, divisor);
    REQUIRE(result == expected);
    // One by one, like the last elements of an array, which fill no vector.
    for (std::size_t i = 0; i < std::min<std::size_t>(numbers.size(), 512); ++i) {
      auto x = numbers[i];
      divide<T>(*kernels, dtype, {&x, 1}, divisor);
      REQUIRE(x == expected[i]);
    }
  }
}

template <class T>
void check_floats(Dtype dtype, std::vector<T> const& numbers, std::uint32_t divisor) {
  for (auto const* kernels : runnable_kernels()) {
    if (kernels == nullptr) continue;
    CAPTURE(kernels->name);
    CAPTURE(divisor);
    auto result = numbers;
    divide<T>(*kernels, dtype, result, divisor);
    std::vector<T> expected;
    for (auto const x : numbers) expected.push_back(x / static_cast<T>(divisor));
    REQUIRE(std::memcmp(result.data(), expected.data(), numbers.size() * sizeof(T)) == 0);
  }
}

}  // namespace

TEST_CASE("every 8-bit and 16-bit number over every number of ranks is the result of a division") {
  auto const i8 = all_numbers<std::int8_t>();
  auto const u8 = all_numbers<std::uint8_t>();
  auto const i16 = all_numbers<std::int16_t>();
  auto const u16 = all_numbers<std::uint16_t>();
  for (auto const divisor : divisors()) {
    check(Dtype::i8, i8, divisor);
    check(Dtype::u8, u8, divisor);
    check(Dtype::i16, i16, divisor);
    check(Dtype::u16, u16, divisor);
  }
}

TEST_CASE("32-bit and 64-bit numbers at the edges of quotients, and random ones, are the result of a division") {
  for (auto const divisor : divisors()) {
    check(Dtype::i32, telling_numbers<std::int32_t>(divisor), divisor);
    check(Dtype::u32, telling_numbers<std::uint32_t>(divisor), divisor);
    check(Dtype::i64, telling_numbers<std::int64_t>(divisor), divisor);
    check(Dtype::u64, telling_numbers<std::uint64_t>(divisor), divisor);
  }
}

TEST_CASE("floats over a number of ranks are rounded like a division, down to the smallest numbers") {
  using F32 = std::numeric_limits<float>;
  using F64 = std::numeric_limits<double>;
  std::vector<float> f32{0.0F, -0.0F, 1.0F, F32::denorm_min(), F32::min(), F32::max(), F32::lowest(), F32::infinity()};
  std::vector<double> f64{0.0, -0.0, 1.0, F64::denorm_min(), F64::min(), F64::max(), F64::lowest(), F64::infinity()};
  std::mt19937_64 random(7);
  for (int i = 0; i < 4000; ++i) {
    // Random bits except NaNs, whose bits depend on the processor.
    auto const bits = random() & ~(std::uint64_t{1} << 62 | std::uint64_t{1} << 30);
    f64.push_back(__builtin_bit_cast(double, bits));
    f32.push_back(__builtin_bit_cast(float, static_cast<std::uint32_t>(bits)));
    // The same as a subnormal number.
    f64.push_back(__builtin_bit_cast(double, bits & 0x800fffffffffffff));
    f32.push_back(__builtin_bit_cast(float, static_cast<std::uint32_t>(bits & 0x807fffff)));
  }
  for (auto const divisor : divisors()) {
    check_floats(Dtype::f32, f32, divisor);
    check_floats(Dtype::f64, f64, divisor);
  }
}
