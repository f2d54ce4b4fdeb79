// Compares thousands of steps with the textbook's formulas in double precision.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "worker/devices/reduce.hpp"
#include "worker/parameters/optimizers/optimizer.hpp"

using namespace chorus;
using namespace chorus::parameters;

namespace {

constexpr int steps = 3000;
constexpr std::size_t count = 37;

// The formulas of the table in docs/reference/optimizers.md, element by element.
class Reference {
 public:
  Reference(api::OptimizerSettings settings, std::vector<double> values)
      : s_(std::move(settings)),
        w_(std::move(values)),
        a_(w_.size(), s_.initial_accumulator.value_or(0)),
        b_(w_.size()) {}

  void step(std::vector<double> g) {
    ++t_;
    double norm = 0;
    for (auto const x : g) norm += x * x;
    norm = std::sqrt(norm);
    for (std::size_t i = 0; i < w_.size(); ++i) {
      if (s_.clip_norm && norm > *s_.clip_norm) g[i] *= *s_.clip_norm / norm;
      if (s_.clip_value) g[i] = std::clamp(g[i], -*s_.clip_value, *s_.clip_value);
      if (s_.name != "adamw") g[i] += s_.weight_decay.value_or(0) * w_[i];
      w_[i] -= update(i, g[i]);
    }
  }
  [[nodiscard]] std::vector<double> const& values() const { return w_; }

 private:
  double update(std::size_t i, double g) {
    if (s_.name == "none") return -g;
    auto const rate = *s_.learning_rate;
    if (s_.name == "sgd") return rate * g;
    if (s_.name == "adagrad") return rate * g / (std::sqrt(a_[i] += g * g) + *s_.epsilon);
    if (s_.name == "momentum" || s_.name == "nesterov") {
      a_[i] = *s_.momentum * a_[i] + g;
      return rate * (s_.name == "momentum" ? a_[i] : g + *s_.momentum * a_[i]);
    }
    a_[i] = *s_.beta1 * a_[i] + (1 - *s_.beta1) * g;
    b_[i] = *s_.beta2 * b_[i] + (1 - *s_.beta2) * g * g;
    auto const mean = a_[i] / (1 - std::pow(*s_.beta1, t_)), square = b_[i] / (1 - std::pow(*s_.beta2, t_));
    auto const decay = s_.name == "adamw" ? *s_.weight_decay * w_[i] : 0;
    return rate * (decay + mean / (std::sqrt(square) + *s_.epsilon));
  }

  api::OptimizerSettings s_;
  std::vector<double> w_, a_, b_;
  int t_ = 0;
};

// Rounded to bf16, so that every dtype gets the same gradients.
double gradient_at(int step, std::size_t i) {
  auto const mixed = (static_cast<std::uint64_t>(step) * 1000 + i + 1) * 0x9e3779b97f4a7c15u;
  auto const small = static_cast<double>(static_cast<int>(mixed >> 40) % 128 - 64);
  return (small + static_cast<double>(i % 5)) / 256;
}

template <class Number>
std::vector<std::byte> as(std::vector<double> const& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(Number));
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto const value = static_cast<Number>(values[i]);
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
  return bytes;
}

std::vector<std::byte> as_dtype(Dtype dtype, std::vector<double> const& values) {
  if (dtype == Dtype::f64) return as<double>(values);
  auto bytes = as<float>(values);
  if (dtype == Dtype::f32) return bytes;
  std::vector<std::byte> halves(values.size() * 2);
  devices::narrow(dtype, halves.data(), bytes.data(), values.size());
  return halves;
}

std::vector<double> from_dtype(Dtype dtype, std::span<std::byte const> bytes) {
  std::vector<double> values(bytes.size() / element_bytes(dtype));
  std::vector<float> floats(values.size());
  if (dtype == Dtype::f64) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  if (dtype == Dtype::f32)
    std::memcpy(floats.data(), bytes.data(), bytes.size());
  else
    devices::widen(dtype, reinterpret_cast<std::byte*>(floats.data()), bytes.data(), floats.size());
  return {floats.begin(), floats.end()};
}

std::vector<double> initial_values() {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = (static_cast<double>(i) - 18) / 8;
  return values;
}

// Returns the greatest distance of the optimizer's values, or of its master copy, from the reference.
double distance_after(char const* json, Dtype dtype) {
  auto const settings = api::parse_optimizer(json).value();
  auto optimizer = Optimizer::make(settings, dtype, count).value();
  auto values = as_dtype(dtype, initial_values());
  optimizer.adopt(values, 0);
  Reference reference(settings, initial_values());
  for (int step = 0; step < steps; ++step) {
    std::vector<double> gradient(count);
    for (std::size_t i = 0; i < count; ++i) gradient[i] = gradient_at(step, i);
    auto const pushed = as_dtype(dtype, gradient);
    optimizer.step(values, {pushed, dtype});
    reference.step(gradient);
  }
  CHECK(optimizer.steps() == steps);
  auto ours = from_dtype(dtype, values);
  for (auto const& array : optimizer.state())
    if (array.name == "master") {
      ours = from_dtype(Dtype::f32, array.bytes);
      // The values are the master copy, rounded once.
      CHECK(std::equal(values.begin(), values.end(), as_dtype(dtype, ours).begin()));
    }
  double distance = 0, size = 1;
  for (std::size_t i = 0; i < count; ++i) {
    distance = std::max(distance, std::abs(ours[i] - reference.values()[i]));
    size = std::max(size, std::abs(reference.values()[i]));
  }
  return distance / size;
}

}  // namespace

// A step rounds a value once, and its update a few times: 3000 steps stay within 3000 units in the last place.
TEST_CASE("thousands of steps stay with a reference in double precision") {
  constexpr double f32_bound = steps * 0x1p-23, f64_bound = steps * 0x1p-52;
  for (auto const* json :
       {R"({"name":"sgd","learning_rate":0.05})", R"({"name":"sgd","learning_rate":0.05,"weight_decay":0.01})",
        R"({"name":"sgd","learning_rate":0.05,"clip_norm":0.5})", R"({"name":"sgd","clip_value":0.1})",
        R"({"name":"sgd","clip_value":0.1,"clip_norm":0.7,"weight_decay":0.1})",
        R"({"name":"momentum","learning_rate":0.01,"momentum":0.9})",
        R"({"name":"nesterov","learning_rate":0.01,"momentum":0.95,"weight_decay":0.001})",
        R"({"name":"adagrad","learning_rate":0.1})", R"({"name":"adagrad","initial_accumulator":0.1})",
        R"({"name":"adam","learning_rate":0.001})", R"({"name":"adam","learning_rate":0.001,"weight_decay":0.01})",
        R"({"name":"adamw","learning_rate":0.002,"weight_decay":0.05,"clip_norm":1})",
        R"({"name":"adam","beta1":0,"beta2":0.9,"epsilon":0.001})"}) {
    INFO(std::string(json));
    CHECK(distance_after(json, Dtype::f64) < f64_bound);
    CHECK(distance_after(json, Dtype::f32) < f32_bound);
    CHECK(distance_after(json, Dtype::f16) < f32_bound);
    CHECK(distance_after(json, Dtype::bf16) < f32_bound);
  }
  CHECK(distance_after(R"({"name":"none"})", Dtype::f64) == 0);  // sums of these numbers are exact
  CHECK(distance_after(R"({"name":"none"})", Dtype::f32) == 0);
}

TEST_CASE("steps that are too small for bf16 add up in the master copy") {
  auto const settings = api::parse_optimizer(R"({"name":"sgd","learning_rate":1})").value();
  auto optimizer = Optimizer::make(settings, Dtype::bf16, 1).value();
  auto values = as_dtype(Dtype::bf16, {1});
  optimizer.adopt(values, 0);
  auto const tiny = as_dtype(Dtype::bf16, {-0x1p-12});
  for (int i = 0; i < 4096; ++i) optimizer.step(values, {tiny, Dtype::bf16});
  CHECK(from_dtype(Dtype::bf16, values) == std::vector<double>{2});
}

TEST_CASE("a gradient of f16 values may be pushed in f32, without a loss") {
  auto const settings = api::parse_optimizer(R"({"name":"sgd","learning_rate":1})").value();
  auto optimizer = Optimizer::make(settings, Dtype::f16, 3).value();
  std::vector<std::byte> values(6);
  auto const gradient = as<float>({-0x1.000002p0, 70000, -0x1p-30});
  optimizer.step(values, {gradient, Dtype::f32});
  CHECK(from_dtype(Dtype::f32, optimizer.state().at(0).bytes) == std::vector<double>{0x1.000002p0, -70000, 0x1p-30});
}
