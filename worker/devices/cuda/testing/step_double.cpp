#include "worker/devices/cuda/testing/step_double.hpp"

#include <cmath>
#include <cstring>
#include <vector>

#include "worker/devices/reduce.hpp"

namespace chorus::devices::testing {
namespace {

template <class Number>
std::vector<Number> numbers_at(std::byte const* from, std::uint64_t count) {
  std::vector<Number> numbers(from == nullptr ? 0 : count);
  if (!numbers.empty()) std::memcpy(numbers.data(), from, count * sizeof(Number));
  return numbers;
}

template <class Number>
void put(std::byte* to, std::vector<Number> const& numbers) {
  if (!numbers.empty()) std::memcpy(to, numbers.data(), numbers.size() * sizeof(Number));
}

template <class Number>
void step_one(StepMethod method, Number& w, Number g, Number* a, Number* b, StepScalars const& s) {
  auto const rate = static_cast<Number>(s.rate), first = static_cast<Number>(s.first);
  auto const epsilon = static_cast<Number>(s.epsilon);
  switch (method) {
    case StepMethod::sgd:
      w = w - rate * g;
      return;
    case StepMethod::momentum:
      *a = first * *a + g;
      w = w - rate * *a;
      return;
    case StepMethod::nesterov:
      *a = first * *a + g;
      w = w - rate * (g + first * *a);
      return;
    case StepMethod::adagrad:
      *a = *a + g * g;
      w = w - rate * g / (std::sqrt(*a) + epsilon);
      return;
    case StepMethod::adamw:
      w = w - static_cast<Number>(s.decay) * w;
      [[fallthrough]];
    case StepMethod::adam:
      *a = first * *a + static_cast<Number>(s.first_rest) * g;
      *b = static_cast<Number>(s.second) * *b + static_cast<Number>(s.second_rest) * (g * g);
      w = w - rate * *a / (std::sqrt(*b) * static_cast<Number>(s.root) + epsilon);
      return;
  }
}

template <class Number>
void step_all(StepOrder const& order, std::vector<Number>& values, std::vector<Number> const& gradient) {
  auto first = numbers_at<Number>(order.first, order.elements);
  auto second = numbers_at<Number>(order.second, order.elements);
  auto const& s = order.scalars;
  auto const limit = static_cast<Number>(s.limit), decay = static_cast<Number>(s.decay);
  for (std::uint64_t i = 0; i < order.elements; ++i) {
    auto g = gradient[i];
    if (order.shapes_gradient) {
      g = static_cast<Number>(s.scale) * g;
      if (g > limit) g = limit;
      if (g < -limit) g = -limit;
      if (order.method != StepMethod::adamw) g = g + decay * values[i];
    }
    step_one(order.method, values[i], g, first.empty() ? nullptr : &first[i], second.empty() ? nullptr : &second[i], s);
  }
  put(order.first, first);
  put(order.second, second);
}

std::vector<float> widened(Dtype dtype, std::byte const* from, std::uint64_t count) {
  std::vector<float> wide(count);
  widen(dtype, reinterpret_cast<std::byte*>(wide.data()), from, count);
  return wide;
}

template <class Number>
void step_plain(StepOrder const& order) {
  auto values = numbers_at<Number>(order.values, order.elements);
  step_all(order, values, numbers_at<Number>(order.gradient, order.elements));
  put(order.values, values);
}

void step_halves(StepOrder const& order) {
  auto const count = order.elements;
  auto master = numbers_at<float>(order.master, count);
  step_all(
      order, master,
      order.wide_gradient ? numbers_at<float>(order.gradient, count) : widened(order.dtype, order.gradient, count));
  put(order.master, master);
  narrow(order.dtype, order.values, reinterpret_cast<std::byte const*>(master.data()), count);
}

}  // namespace

void take_step(StepOrder const& order) {
  if (order.elements == 0) return;
  if (order.dtype == Dtype::f64) return step_plain<double>(order);
  if (order.dtype == Dtype::f32) return step_plain<float>(order);
  step_halves(order);
}

}  // namespace chorus::devices::testing
