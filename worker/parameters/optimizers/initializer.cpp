// Compiled without contraction of multiplications and additions, so that every process computes the same bits.
#include "worker/parameters/optimizers/initializer.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "collectives/core/assert.hpp"
#include "worker/devices/reduce.hpp"
#include "worker/parameters/optimizers/errc.hpp"
#include "worker/parameters/optimizers/philox.hpp"

namespace chorus::parameters {
namespace {

constexpr std::size_t draws_per_counter = 2;

// Returns a number in the open interval (0, 1).
double fraction_of(std::uint32_t high, std::uint32_t low) {
  auto const bits = (std::uint64_t{high} << 32 | low) >> 12;
  return (static_cast<double>(bits) + 0.5) * 0x1p-52;
}

// The logarithm of a positive normal number, to within 2 units in the last place. Uses additions, multiplications and
// divisions only, because std::log may differ between processors.
double natural_logarithm(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // exact; in [0.5, 1)
  if (mantissa < 0.70710678118654752) {
    mantissa *= 2;
    --exponent;
  }
  auto const s = (mantissa - 1) / (mantissa + 1);
  auto const square = s * s;
  double series = 0;
  for (int n = 23; n >= 1; n -= 2) series = series * square + 1.0 / n;
  return static_cast<double>(exponent) * 0.69314718055994530942 + 2 * s * series;
}

double ratio(double x, std::array<double, 8> const& above, std::array<double, 8> const& below) {
  double numerator = 0, denominator = 0;
  for (std::size_t i = 8; i-- > 0;) {
    numerator = numerator * x + above[i];
    denominator = denominator * x + below[i];
  }
  return numerator / denominator;
}

// The quantile of the standard normal distribution: algorithm AS 241 of Wichura (1988), to 1e-16.
double normal_quantile(double fraction) {
  constexpr std::array<double, 8> a{3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                    1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                    3.3430575583588128105e+4, 2.5090809287301226727e+3};
  constexpr std::array<double, 8> b{1.0,
                                    4.2313330701600911252e+1,
                                    6.8718700749205790830e+2,
                                    5.3941960214247511077e+3,
                                    2.1213794301586595867e+4,
                                    3.9307895800092710610e+4,
                                    2.8729085735721942674e+4,
                                    5.2264952788528545610e+3};
  constexpr std::array<double, 8> c{1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                    3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                    2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr std::array<double, 8> d{1.0,
                                    2.05319162663775882187e0,
                                    1.67638483018380384940e0,
                                    6.89767334985100004550e-1,
                                    1.48103976427480074590e-1,
                                    1.51986665636164571966e-2,
                                    5.47593808499534494600e-4,
                                    1.05075007164441684324e-9};
  constexpr std::array<double, 8> e{6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                                    2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                    2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr std::array<double, 8> f{1.0,
                                    5.99832206555887937690e-1,
                                    1.36929880922735805310e-1,
                                    1.48753612908506148525e-2,
                                    7.86869131145613259100e-4,
                                    1.84631831751005468180e-5,
                                    1.42151175831644588870e-7,
                                    2.04426310338993978564e-15};
  auto const q = fraction - 0.5;
  if (std::abs(q) <= 0.425) return q * ratio(0.180625 - q * q, a, b);
  auto const r = std::sqrt(-natural_logarithm(q < 0 ? fraction : 1 - fraction));
  auto const magnitude = r <= 5 ? ratio(r - 1.6, c, d) : ratio(r - 5, e, f);
  return q < 0 ? -magnitude : magnitude;
}

}  // namespace

Result<Initializer> Initializer::make(api::InitializerSettings const& settings, Dtype dtype) {
  Initializer initializer;
  initializer.dtype_ = dtype;
  if (settings.name == "zeros") return initializer;
  bool const is_float = dtype == Dtype::f64 || dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16;
  if (!is_float)
    return Error(OptimizerErrc::unsupported_dtype,
                 "rows of " + std::string(name(dtype)) + " begin with zeros only, not " + settings.name);
  initializer.seed_ = settings.seed.value_or(0);
  if (settings.name == "constant") {
    initializer.base_ = settings.value.value();
  } else if (settings.name == "uniform") {
    initializer.kind_ = Kind::uniform;
    initializer.base_ = settings.low.value();
    initializer.width_ = settings.high.value() - settings.low.value();
  } else {
    CHORUS_ASSERT(settings.name == "normal", "settings are complete");
    initializer.kind_ = Kind::normal;
    initializer.base_ = settings.mean.value();
    initializer.width_ = settings.deviation.value();
  }
  return initializer;
}

double Initializer::draw(double fraction) const {
  switch (kind_) {
    case Kind::constant:
      return base_;
    case Kind::uniform:
      return base_ + width_ * fraction;
    case Kind::normal:
      return base_ + width_ * normal_quantile(fraction);
  }
  return base_;
}

void Initializer::fill(std::uint64_t row, std::span<std::byte> values, std::uint64_t first_column) const {
  if (kind_ == Kind::constant && base_ == 0) return std::fill(values.begin(), values.end(), std::byte{0});
  if (dtype_ == Dtype::f64)
    return draw_all<double>(row, first_column,
                            {reinterpret_cast<double*>(values.data()), values.size() / sizeof(double)});
  if (dtype_ == Dtype::f32)
    return draw_all<float>(row, first_column, {reinterpret_cast<float*>(values.data()), values.size() / sizeof(float)});
  std::array<float, 256> block{};
  auto const* const source = reinterpret_cast<std::byte const*>(block.data());
  auto const count = values.size() / element_bytes(dtype_);
  for (std::uint64_t i = 0; i < count; i += block.size()) {
    auto const part = std::min<std::uint64_t>(block.size(), count - i);
    auto* const to = values.data() + i * element_bytes(dtype_);
    draw_all<float>(row, first_column + i, {block.data(), part});
    devices::narrow(dtype_, to, source, part);
  }
}

template <class Number>
void Initializer::draw_all(std::uint64_t row, std::uint64_t first_column, std::span<Number> into) const {
  PhiloxKey const key{static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)};
  std::array<double, draws_per_counter> fractions{};
  auto drawn = ~std::uint64_t{0};  // counter of the present fractions
  for (std::size_t i = 0; i < into.size(); ++i) {
    auto const column = first_column + i;
    if (kind_ != Kind::constant && column / draws_per_counter != drawn) {
      drawn = column / draws_per_counter;
      auto const bits = philox({static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(row >> 32),
                                static_cast<std::uint32_t>(drawn), static_cast<std::uint32_t>(drawn >> 32)},
                               key);
      fractions = {fraction_of(bits[0], bits[1]), fraction_of(bits[2], bits[3])};
    }
    into[i] = static_cast<Number>(draw(fractions[column % draws_per_counter]));
  }
}

}  // namespace chorus::parameters
