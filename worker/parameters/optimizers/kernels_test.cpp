// The same bits from every instruction set, at every length and alignment, and however a range is cut.
#include "worker/parameters/optimizers/kernels.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "worker/parameters/optimizers/nonfinite.hpp"
#include "worker/parameters/optimizers/optimizer.hpp"

using namespace chorus;
using namespace chorus::parameters;

namespace {

constexpr std::array float_dtypes{Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16};
// Every remainder of a vector register, and more than four registers.
constexpr std::array<std::size_t, 12> lengths{0, 1, 3, 7, 8, 15, 17, 31, 33, 64, 127, 1003};

bool is_half(Dtype dtype) { return dtype == Dtype::f16 || dtype == Dtype::bf16; }

// A number of this dtype in (-2, 2).
void put_number(Dtype dtype, std::byte* at, std::uint64_t i, bool positive) {
  auto const mixed = (i + 1) * 0x9e3779b97f4a7c15u;
  auto value = static_cast<double>(static_cast<std::int64_t>(mixed) >> 12) * 0x1p-50;
  if (positive && value < 0) value = -value;
  auto const single = static_cast<float>(value);
  // Of both halves, those whose highest exponent bit is 0.
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

Coefficients some_coefficients(bool shapes) {
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

struct Case {
  std::size_t method;
  Dtype dtype;
  bool wide_gradient, shapes;
};

// What a loop leaves behind, of everything that it may write; run in parts that end at `cut`.
std::vector<std::byte> run(StepKernels const& kernels, Case const& c, std::size_t count, std::size_t shift,
                           std::size_t cut) {
  auto const wide = is_half(c.dtype) ? Dtype::f32 : c.dtype;
  Numbers values(c.dtype, count, shift, 1), master(wide, count, shift % 3, 7), first(wide, count, (shift + 1) % 5, 100);
  Numbers second(wide, count, (shift + 2) % 7, 200, true);
  Numbers gradient(c.wide_gradient ? Dtype::f32 : c.dtype, count, (shift * 3 + 1) % 5, 300);
  if (c.method == static_cast<std::size_t>(Method::adagrad)) first = Numbers(wide, count, 1, 100, true);
  auto const loop =
      kernels.step[c.method][static_cast<std::size_t>(c.dtype)][c.wide_gradient ? 1 : 0][c.shapes ? 1 : 0];
  for (auto const& [begin, end] : {std::pair(std::size_t{0}, cut), std::pair(cut, count)})
    loop({values.at(begin), gradient.at(begin), master.at(begin), first.at(begin), second.at(begin), end - begin,
          some_coefficients(c.shapes)});
  auto all = values.copy();
  for (auto const& part : {master.copy(), first.copy(), second.copy()}) all.insert(all.end(), part.begin(), part.end());
  return all;
}

template <class Check>
void for_each_case(Check const& check) {
  for (std::size_t method = 0; method < methods_count; ++method)
    for (auto const dtype : float_dtypes)
      for (bool const wide : {false, true})
        for (bool const shapes : {false, true})
          if (!wide || is_half(dtype)) check(Case{method, dtype, wide, shapes});
}

std::uint64_t const nonfinite_bits[float_dtypes_count][3] = {
    {0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000001},
    {0x7f800000, 0xff800000, 0x7fc00001},
    {0x7c00, 0xfc00, 0x7e01},
    {0x7f80, 0xff80, 0x7fc1}};

}  // namespace

TEST_CASE("every instruction set leaves the same bits as the baseline, at every length and alignment") {
  for_each_case([](Case const& c) {
    CAPTURE(c.method);
    CAPTURE(name(c.dtype));
    for (auto const count : lengths)
      for (std::size_t shift = 0; shift < 4; ++shift) {
        auto const expected = run(baseline_kernels(), c, count, 0, count);
        for (auto const* kernels : runnable_kernels())
          if (kernels != nullptr) REQUIRE(run(*kernels, c, count, shift, count) == expected);
      }
  });
}

TEST_CASE("a range that is stepped in two parts ends with the same bits") {
  for_each_case([](Case const& c) {
    for (std::size_t const cut : {0, 1, 17, 63, 130}) {
      auto const whole = run(best_kernels(), c, 131, 0, 131);
      REQUIRE(run(best_kernels(), c, 131, 0, cut) == whole);
    }
  });
}

TEST_CASE("the squared norm has the same bits on every instruction set") {
  for (auto const dtype : {Dtype::f64, Dtype::f32})
    for (auto const count : lengths) {
      Numbers numbers(dtype, count, 1, 5);
      std::array<std::vector<double>, 3> sums;
      for (std::size_t set = 0; set < 3; ++set) {
        sums[set].assign(16, 1);
        if (auto const* kernels = runnable_kernels()[set])
          kernels->squares[static_cast<std::size_t>(dtype)](numbers.at(), count, sums[set].data());
        if (runnable_kernels()[set] != nullptr) REQUIRE(sums[set] == sums[0]);
      }
    }
}

TEST_CASE("what is not finite is counted, and zeroed, wherever it lies") {
  for (auto const* kernels : runnable_kernels()) {
    if (kernels == nullptr) continue;
    for (auto const dtype : float_dtypes)
      for (std::size_t const count : {1, 17, 4096, 9001}) {
        auto const d = static_cast<std::size_t>(dtype);
        Numbers numbers(dtype, count, 1, 9);
        auto expected = numbers.copy();
        CHECK(kernels->count_nonfinite[d](numbers.at(), count) == 0);
        CHECK(kernels->zero_nonfinite[d](numbers.at(), count) == 0);
        REQUIRE(numbers.copy() == expected);
        std::size_t put = 0;
        for (std::size_t const at : {std::size_t{0}, count / 2, count - 1}) {
          std::memcpy(numbers.at(at), &nonfinite_bits[d][put++], element_bytes(dtype));
          std::memset(expected.data() + at * element_bytes(dtype), 0, element_bytes(dtype));
        }
        auto const distinct = count == 1 ? 1u : 3u;
        CHECK(kernels->count_nonfinite[d](numbers.at(), count) == distinct);
        CHECK(kernels->zero_nonfinite[d](numbers.at(), count) == distinct);
        REQUIRE(numbers.copy() == expected);
      }
  }
}

TEST_CASE("the largest finite number is finite, and integers always are") {
  auto const largest = std::numeric_limits<float>::max();
  CHECK(count_nonfinite(Dtype::f32, std::as_bytes(std::span(&largest, 1))) == 0);
  std::vector<std::byte> ones(64, std::byte{0xff});
  CHECK(count_nonfinite(Dtype::f32, ones) == 16);
  CHECK(count_nonfinite(Dtype::i32, ones) == 0);
  CHECK(zero_nonfinite(Dtype::u8, ones) == 0);
}
