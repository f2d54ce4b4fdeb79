#include "worker/devices/carrier.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "worker/devices/reduce.hpp"

using namespace chorus;
using namespace chorus::devices;

namespace {

using Bytes = std::vector<std::byte>;

template <class T>
Bytes bytes_of(std::vector<T> const& values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Computes the average as members do; the order of additions does not matter.
Bytes average(Dtype dtype, std::vector<Bytes> const& tensors) {
  auto const count = static_cast<std::uint32_t>(tensors.size());
  auto const carrier = Carrier::of(dtype, count);
  auto const elements = tensors.front().size() / element_bytes(dtype);
  Bytes sums(carrier.bytes(elements)), wide(sums.size()), result(tensors.front().size());
  carrier.widen(sums, tensors.front());
  for (std::size_t t = 1; t < tensors.size(); ++t) {
    carrier.widen(wide, tensors[t]);
    std::byte const* const sources[] = {sums.data(), wide.data()};
    auto* const to = sums.data();
    Reducer(ReduceOp::sum, carrier.dtype()).run({sources, 2, &to, 1, elements * carrier.per_element()}, {});
  }
  carrier.narrow(result, sums, count);
  return result;
}

template <class T>
void check_integers(Dtype dtype) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> const telling{
      Limits::min(), static_cast<T>(Limits::min() + 1), 0, 1, 7, Limits::max() / 2, static_cast<T>(Limits::max() - 1),
      Limits::max()};
  for (std::uint32_t count = 1; count <= 9; ++count) {
    CAPTURE(count);
    // Element i of tensor t is telling[(i + t i / 8) % 8]: some elements are equal in all tensors, others differ.
    std::vector<Bytes> tensors;
    std::vector<__int128> sums(64);
    for (std::uint32_t t = 0; t < count; ++t) {
      std::vector<T> values;
      for (std::size_t i = 0; i < sums.size(); ++i) {
        values.push_back(telling[(i + t * (i / 8)) % 8]);
        sums[i] += values.back();
      }
      tensors.push_back(bytes_of(values));
    }
    std::vector<T> expected;
    for (auto const sum : sums) expected.push_back(static_cast<T>(sum / count));
    CHECK(average(dtype, tensors) == bytes_of(expected));
  }
}

}  // namespace

TEST_CASE("integers are averaged as if nothing were limited, and truncated towards zero") {
  check_integers<std::int8_t>(Dtype::i8);
  check_integers<std::int16_t>(Dtype::i16);
  check_integers<std::int32_t>(Dtype::i32);
  check_integers<std::int64_t>(Dtype::i64);
  check_integers<std::uint8_t>(Dtype::u8);
  check_integers<std::uint16_t>(Dtype::u16);
  check_integers<std::uint32_t>(Dtype::u32);
  check_integers<std::uint64_t>(Dtype::u64);
}

TEST_CASE("the average of equal f16 or bf16 numbers is that number, for every number and every count") {
  for (auto const dtype : {Dtype::f16, Dtype::bf16}) {
    std::uint16_t const infinity = dtype == Dtype::f16 ? 0x7c00 : 0x7f80;
    std::vector<std::uint16_t> all;
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits)
      if ((bits & 0x7fff) <= infinity) all.push_back(static_cast<std::uint16_t>(bits));
    auto const halves = bytes_of(all);
    for (std::uint32_t const count : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 64, 100}) {
      CAPTURE(name(dtype));
      CAPTURE(count);
      CHECK(average(dtype, std::vector<Bytes>(count, halves)) == halves);
    }
  }
}

TEST_CASE("integers of 8 and 16 bits are carried in 32 as long as all summands fit, in 64 beyond") {
  CHECK(Carrier::of(Dtype::i16, 65536).dtype() == Dtype::i32);
  CHECK(Carrier::of(Dtype::i16, 65537).dtype() == Dtype::i64);
  CHECK(Carrier::of(Dtype::u8, 65537).dtype() == Dtype::u64);
  std::int64_t const sum = std::int64_t{65537} * -32768;
  Bytes sums = bytes_of(std::vector{sum}), result(2);
  Carrier::of(Dtype::i16, 65537).narrow(result, sums, 65537);
  CHECK(result == bytes_of(std::vector<std::int16_t>{-32768}));
}

TEST_CASE("the average of equal f32 or f64 numbers is that number, from the largest to the smallest") {
  std::mt19937_64 random(7);
  std::vector<float> floats{std::numeric_limits<float>::max(), std::numeric_limits<float>::min(),
                            std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::infinity(), -0.0F};
  std::vector<double> doubles{std::numeric_limits<double>::max(),
                              std::numeric_limits<double>::min(),
                              std::numeric_limits<double>::denorm_min(),
                              std::numeric_limits<double>::infinity(),
                              -0.0,
                              0x1.fffffffffffffp899,
                              0x1.fffffffffffffp901,
                              0x1.0000000000001p-1022};
  while (doubles.size() < 10000) {
    auto const bits = random();
    if (auto const f = std::bit_cast<float>(static_cast<std::uint32_t>(bits)); f == f) floats.push_back(f);
    if (auto const d = std::bit_cast<double>(bits); d == d) doubles.push_back(d);
  }
  for (std::uint32_t const count : {1, 2, 3, 4, 5, 6, 7, 9, 13, 100}) {
    CAPTURE(count);
    CHECK(average(Dtype::f32, std::vector<Bytes>(count, bytes_of(floats))) == bytes_of(floats));
    CHECK(average(Dtype::f64, std::vector<Bytes>(count, bytes_of(doubles))) == bytes_of(doubles));
  }
}

TEST_CASE("the average of f64 numbers of opposite signs, and of those that are no numbers") {
  auto const of = [](double a, double b, double c) {
    return average(Dtype::f64, {bytes_of(std::vector{a}), bytes_of(std::vector{b}), bytes_of(std::vector{c})});
  };
  CHECK(of(1, -1, 0x1p-60) == bytes_of(std::vector{0x1p-60 / 3}));
  CHECK(of(1, 2, 6) == bytes_of(std::vector{3.0}));
  auto const infinite = std::numeric_limits<double>::infinity();
  CHECK(of(1, infinite, 2) == bytes_of(std::vector{infinite}));
  double result = 0;
  std::memcpy(&result, of(infinite, -infinite, 0).data(), sizeof(result));
  CHECK(result != result);
}

TEST_CASE("f32 and f64 can be scaled, so that the average of the largest numbers does not overflow") {
  for (std::uint32_t const count : {1, 2, 3, 4, 8, 100}) {
    CAPTURE(count);
    for (auto const dtype : {Dtype::f32, Dtype::f64}) CHECK(Carrier::scaled(dtype, count).is_as_wide());
    std::vector const doubles{std::numeric_limits<double>::max(), -1.5, 0.0, 1e-300};
    auto const carrier = Carrier::scaled(Dtype::f64, count);
    Bytes sums(32), result(32);
    carrier.widen(sums, bytes_of(doubles));
    std::vector<std::byte const*> const sources(count, sums.data());
    auto* to = result.data();
    Reducer(ReduceOp::sum, Dtype::f64).run({sources.data(), count, &to, 1, 4}, {});
    carrier.narrow(result, result, count);
    if ((count & (count - 1)) == 0)
      CHECK(result == bytes_of(doubles));
    else
      CHECK(std::isfinite(std::bit_cast<double>(*reinterpret_cast<std::uint64_t const*>(result.data()))));
  }
}
