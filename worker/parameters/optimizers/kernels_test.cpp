// Every instruction set gives the same bits, at every length and alignment, and however a range is split.
#include "worker/parameters/optimizers/kernels.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "worker/parameters/optimizers/nonfinite.hpp"
#include "worker/parameters/optimizers/optimizer.hpp"
#include "worker/parameters/optimizers/testing/step_cases.hpp"

using namespace chorus;
using namespace chorus::parameters;
using namespace chorus::parameters::testing;

namespace {

// Every remainder of a vector register, and more than four registers.
constexpr std::array<std::size_t, 12> lengths{0, 1, 3, 7, 8, 15, 17, 31, 33, 64, 127, 1003};

// Returns everything that a kernel may write, after a run in two parts, the first of which ends at `cut`.
std::vector<std::byte> run(StepKernels const& kernels, StepCase const& c, std::size_t count, std::size_t shift,
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

std::uint64_t const nonfinite_bits[float_dtypes_count][3] = {
    {0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000001},
    {0x7f800000, 0xff800000, 0x7fc00001},
    {0x7c00, 0xfc00, 0x7e01},
    {0x7f80, 0xff80, 0x7fc1}};

}  // namespace

TEST_CASE("every instruction set gives the same bits as the baseline, at every length and alignment") {
  for_each_case([](StepCase const& c) {
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
  for_each_case([](StepCase const& c) {
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

TEST_CASE("elements that are not finite are counted, and zeroed, at every place") {
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
