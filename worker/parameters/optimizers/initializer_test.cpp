#include "worker/parameters/optimizers/initializer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "worker/parameters/optimizers/errc.hpp"
#include "worker/parameters/optimizers/philox.hpp"

using namespace chorus;
using namespace chorus::parameters;

namespace {

Initializer make(char const* json, Dtype dtype) {
  return Initializer::make(api::parse_initializer(json).value(), dtype).value();
}

template <class Number>
std::vector<Number> draw(Initializer const& initializer, std::uint64_t row, std::size_t count,
                         std::uint64_t first_column = 0) {
  std::vector<Number> values(count);
  initializer.fill(row, std::as_writable_bytes(std::span(values)), first_column);
  return values;
}

// Mean, variance, and the fraction of draws below mean + x deviations.
struct Moments {
  double mean = 0, variance = 0, below_one = 0;
};
Moments moments(std::vector<double> const& draws, double threshold) {
  auto const n = static_cast<double>(draws.size());
  Moments m;
  for (auto const x : draws) m.mean += x / n;
  for (auto const x : draws) m.variance += (x - m.mean) * (x - m.mean) / n;
  m.below_one =
      static_cast<double>(std::count_if(draws.begin(), draws.end(), [&](double x) { return x < threshold; })) / n;
  return m;
}

std::vector<double> many(char const* json) {
  std::vector<double> all;
  for (std::uint64_t row = 0; row < 400; ++row) {
    auto const values = draw<double>(make(json, Dtype::f64), row, 500);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

}  // namespace

TEST_CASE("the counters are Philox 4x32-10: the vectors that its authors published") {
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr auto ones = ~std::uint32_t{0};
  CHECK(philox({ones, ones, ones, ones}, {ones, ones}) ==
        PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a row has the same bits whenever and in whatever parts it is drawn") {
  for (auto const* json :
       {R"({"name":"uniform","seed":3})", R"({"name":"normal","seed":3})", R"({"name":"constant","value":2})"}) {
    auto const whole = draw<float>(make(json, Dtype::f32), 77, 300);
    for (std::size_t const cut : {1, 2, 255, 299}) {
      auto left = draw<float>(make(json, Dtype::f32), 77, cut);
      auto const right = draw<float>(make(json, Dtype::f32), 77, 300 - cut, cut);
      left.insert(left.end(), right.begin(), right.end());
      CHECK(left == whole);
    }
  }
}

TEST_CASE("rows, seeds and columns draw different numbers") {
  auto const row = [](std::uint64_t number, char const* json) {
    return draw<float>(make(json, Dtype::f32), number, 8);
  };
  auto const first = row(0, R"({"name":"uniform","seed":1})");
  CHECK(first != row(1, R"({"name":"uniform","seed":1})"));
  CHECK(first != row(std::uint64_t{1} << 32, R"({"name":"uniform","seed":1})"));
  CHECK(first != row(0, R"({"name":"uniform","seed":2})"));
  CHECK(first != row(0, R"({"name":"uniform","seed":4294967297})"));
  auto sorted = first;
  std::sort(sorted.begin(), sorted.end());
  CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end());
}

TEST_CASE("draws have the requested distributions") {
  auto const even = many(R"({"name":"uniform","low":-1,"high":3,"seed":11})");
  CHECK(*std::min_element(even.begin(), even.end()) >= -1);
  CHECK(*std::max_element(even.begin(), even.end()) <= 3);
  auto const of_even = moments(even, 0);
  CHECK(of_even.mean == doctest::Approx(1).epsilon(0.01));
  CHECK(of_even.variance == doctest::Approx(16.0 / 12).epsilon(0.01));
  CHECK(of_even.below_one == doctest::Approx(0.25).epsilon(0.01));
  auto const normal = many(R"({"name":"normal","mean":5,"deviation":2,"seed":12})");
  auto const of_normal = moments(normal, 7);
  CHECK(of_normal.mean == doctest::Approx(5).epsilon(0.01));
  CHECK(of_normal.variance == doctest::Approx(4).epsilon(0.01));
  CHECK(of_normal.below_one == doctest::Approx(0.8413447).epsilon(0.01));
  auto const tails = moments(normal, 5 - 2 * 3);
  CHECK(std::abs(tails.below_one - 0.00135) < 0.0003);
}

// The distribution function of each draw gives the fraction that it was drawn from.
TEST_CASE("normal draws invert the normal distribution, in its middle and in its tails") {
  auto const standard = make(R"({"name":"normal","mean":0,"deviation":1,"seed":5})", Dtype::f64);
  auto const unit = make(R"({"name":"uniform","low":0,"high":1,"seed":5})", Dtype::f64);
  double smallest = 1;
  for (std::uint64_t row = 0; row < 200; ++row) {
    auto const x = draw<double>(standard, row, 100), u = draw<double>(unit, row, 100);
    for (std::size_t i = 0; i < x.size(); ++i) {
      REQUIRE(std::erfc(-x[i] * std::sqrt(0.5)) / 2 == doctest::Approx(u[i]).epsilon(1e-13));
      smallest = std::min(smallest, u[i]);
    }
  }
  CHECK(smallest < 1e-3);
}

// These bits must not change: a release with other bits would give a restarted shard other rows than its backup has.
TEST_CASE("the bits of a row do not change between releases") {
  auto const normal = draw<float>(make(R"({"name":"normal","seed":7})", Dtype::f32), 42, 3);
  auto const uniform = draw<float>(make(R"({"name":"uniform","seed":7})", Dtype::f32), 42, 3);
  std::vector<std::uint32_t> bits;
  for (auto const& values : {normal, uniform})
    for (auto const value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  CHECK(bits == std::vector<std::uint32_t>{0x3c957664, 0xbd13f43e, 0x3c76e446, 0x3c695198, 0xbcd9137f, 0x3c420c93});
}

TEST_CASE("halves are the f32 draw, rounded; integers begin with zeros only") {
  CHECK(draw<std::uint16_t>(make(R"({"name":"constant","value":1.5})", Dtype::f16), 0, 600) ==
        std::vector<std::uint16_t>(600, 0x3e00));
  auto const wide = draw<float>(make(R"({"name":"uniform","seed":9})", Dtype::f32), 3, 600);
  auto const narrow = draw<std::uint16_t>(make(R"({"name":"uniform","seed":9})", Dtype::bf16), 3, 600);
  for (std::size_t i = 0; i < wide.size(); ++i) {
    auto const value = std::bit_cast<float>(std::uint32_t{narrow[i]} << 16);
    REQUIRE(std::abs(value - wide[i]) <= std::abs(wide[i]) * 0x1p-8F);
  }
  CHECK(draw<std::int32_t>(make(R"({"name":"zeros"})", Dtype::i32), 0, 4) == std::vector<std::int32_t>(4));
  auto const refused = Initializer::make(api::parse_initializer(R"({"name":"uniform"})").value(), Dtype::u8);
  REQUIRE(refused.has_error());
  CHECK(refused.error().code == OptimizerErrc::unsupported_dtype);
}
