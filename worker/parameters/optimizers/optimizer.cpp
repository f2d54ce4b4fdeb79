#include "worker/parameters/optimizers/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "collectives/core/assert.hpp"
#include "collectives/core/fetch_soon.hpp"
#include "worker/devices/processor.hpp"
#include "worker/devices/reduce.hpp"
#include "worker/parameters/optimizers/errc.hpp"

namespace chorus::parameters {
namespace {

constexpr std::array<std::string_view, methods_count> method_names{"sgd",     "momentum", "nesterov",
                                                                   "adagrad", "adam",     "adamw"};

// Selected rows are not adjacent, so each step would wait for the row's memory: they are prefetched this far ahead. The
// processor itself prefetches the rest of longer rows.
constexpr std::size_t rows_ahead = 16;
constexpr std::size_t fetched_bytes = 1024;

struct RowArray {
  std::byte const* data;
  std::size_t row_bytes;
};

bool is_half(Dtype dtype) { return dtype == Dtype::f16 || dtype == Dtype::bf16; }
bool is_float(Dtype dtype) { return static_cast<std::size_t>(dtype) < float_dtypes_count; }

// Uses multiplications only, because std::pow may give different bits on different processors.
double power(double base, std::uint64_t exponent) {
  double result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result *= base;
    base *= base;
  }
  return result;
}

// Computes the parameters of a step that are the same for all elements.
Coefficients make_coefficients(Method method, api::OptimizerSettings const& settings, Step const& step) {
  Coefficients c;
  auto const rate = settings.learning_rate.value();
  auto const decay = settings.weight_decay.value();
  c.rate = rate;
  c.decay = method == Method::adamw ? rate * decay : decay;
  c.first = settings.momentum.value_or(0);
  c.epsilon = settings.epsilon.value_or(0);
  c.scale = step.scale;
  c.limit = settings.clip_value.value_or(std::numeric_limits<double>::infinity());
  if (method == Method::adam || method == Method::adamw) {
    c.first = settings.beta1.value();
    c.second = settings.beta2.value();
    c.first_rest = 1 - c.first;
    c.second_rest = 1 - c.second;
    c.rate = rate / (1 - power(c.first, step.number));
    c.root = 1 / std::sqrt(1 - power(c.second, step.number));
  }
  return c;
}

// Returns true if the gradient is changed first. The decay of adamw does not change the gradient.
bool shapes_gradient(Method method, Coefficients const& c) {
  return c.scale != 1 || std::isfinite(c.limit) || (method != Method::adamw && c.decay != 0);
}

}  // namespace

std::array<StepKernels const*, 3> const& runnable_kernels() {
  static std::array<StepKernels const*, 3> const runnable = [] {
    std::array<StepKernels const*, 3> found{&baseline_kernels(), nullptr, nullptr};
#if defined(__x86_64__)
    auto const best = devices::best_instruction_set();
    if (best >= devices::InstructionSet::avx2) found[1] = &avx2_kernels();
    if (best >= devices::InstructionSet::avx512) found[2] = &avx512_kernels();
#endif
    return found;
  }();
  return runnable;
}

StepKernels const& best_kernels() {
  StepKernels const* best = nullptr;
  for (auto const* kernels : runnable_kernels())
    if (kernels != nullptr) best = kernels;
  return *best;
}

Result<Optimizer> Optimizer::make(api::OptimizerSettings const& settings, Dtype dtype, std::uint64_t elements,
                                  std::uint64_t row_elements, State state) {
  CHORUS_ASSERT(row_elements == 0 || elements % row_elements == 0, "a shard has whole rows");
  Optimizer optimizer;
  optimizer.settings_ = settings;
  optimizer.dtype_ = dtype;
  optimizer.row_elements_ = row_elements;
  optimizer.state_ = state;
  auto const* const method = std::find(method_names.begin(), method_names.end(), settings.name);
  if (method != method_names.end()) optimizer.method_ = static_cast<Method>(method - method_names.begin());
  CHORUS_ASSERT(optimizer.method_ || settings.name == "none", "settings are complete");
  if (optimizer.method_ && !is_float(dtype))
    return Error(OptimizerErrc::unsupported_dtype,
                 "parameters of " + std::string(name(dtype)) + " have the optimizer none only, not " + settings.name);
  optimizer.add_slots();
  if (auto const grown = optimizer.grow(elements); grown.has_error()) return grown.error();
  return optimizer;
}

void Optimizer::add_slots() {
  if (!method_) return;
  auto const wide = is_half(dtype_) ? Dtype::f32 : dtype_;
  auto const add_slot = [&](std::string_view name, double initial) {
    slots_.push_back({name, wide, 1, initial, state_, {}});
  };
  switch (*method_) {
    case Method::sgd:
      break;
    case Method::momentum:
    case Method::nesterov:
      add_slot("momentum", 0);
      break;
    case Method::adagrad:
      add_slot("accumulator", settings_.initial_accumulator.value());
      break;
    case Method::adam:
    case Method::adamw:
      add_slot("first_moment", 0);
      add_slot("second_moment", 0);
      break;
  }
  if (is_half(dtype_)) {
    master_ = slots_.size();
    add_slot("master", 0);
  }
  bool const corrects_bias = *method_ == Method::adam || *method_ == Method::adamw;
  if (corrects_bias && row_elements_ != 0) {
    row_steps_ = slots_.size();
    slots_.push_back({"row_steps", Dtype::u64, row_elements_, 0, State::here, {}});
  }
}

Status Optimizer::grow(std::uint64_t elements) {
  CHORUS_ASSERT(elements >= elements_, "a shard grows");
  CHORUS_ASSERT(row_elements_ == 0 || elements % row_elements_ == 0, "a shard has whole rows");
  constexpr std::uint64_t elements_max = std::uint64_t{1} << 59;  // so that their bytes fit into 64 bits
  if (elements > elements_max)
    return Error(OptimizerErrc::out_of_memory, std::to_string(elements) + " elements are more than memory can hold");
  try {
    // Allocates all memory first, so that a failure changes nothing; doubles it, so that growing by rows is not
    // quadratic.
    for (auto& slot : slots_) {
      if (slot.where == State::elsewhere) continue;
      auto const bytes = elements / slot.elements_each * element_bytes(slot.dtype);
      if (bytes > slot.bytes.capacity() && !slot.bytes.empty())
        slot.bytes.reserve(std::max<std::size_t>(bytes, 2 * slot.bytes.capacity()));
      slot.bytes.reserve(bytes);
    }
  } catch (std::bad_alloc const&) {
    return Error(OptimizerErrc::out_of_memory,
                 "no memory for the state of " + settings_.name + " over " + std::to_string(elements) + " elements");
  }
  for (auto& slot : slots_) {
    if (slot.where == State::elsewhere) continue;
    auto const from = slot.bytes.size();
    slot.bytes.resize(elements / slot.elements_each * element_bytes(slot.dtype));
    if (slot.initial == 0) continue;
    auto const fill = [&](auto value) {
      for (auto at = from; at < slot.bytes.size(); at += sizeof value)
        std::memcpy(slot.bytes.data() + at, &value, sizeof value);
    };
    slot.dtype == Dtype::f64 ? fill(slot.initial) : fill(static_cast<float>(slot.initial));
  }
  elements_ = elements;
  return ok();
}

std::byte* Optimizer::slot_at(std::size_t slot, std::uint64_t element) {
  return slots_[slot].bytes.data() + element * element_bytes(slots_[slot].dtype);
}

std::vector<StateArray> Optimizer::state() {
  std::vector<StateArray> arrays;
  for (auto& slot : slots_)
    if (slot.where == State::here) arrays.push_back({slot.name, slot.dtype, slot.elements_each, slot.bytes});
  return arrays;
}

std::vector<Optimizer::ArrayElsewhere> Optimizer::state_elsewhere() const {
  std::vector<ArrayElsewhere> arrays;
  for (auto const& slot : slots_)
    if (slot.where == State::elsewhere) arrays.push_back({slot.name, slot.dtype, slot.initial});
  return arrays;
}

void Optimizer::adopt(std::span<std::byte const> values, std::uint64_t first_element) {
  if (!master_ || state_ == State::elsewhere) return;
  auto const count = values.size() / element_bytes(dtype_);
  CHORUS_ASSERT(first_element <= elements_ && count <= elements_ - first_element, "the elements are the shard's");
  devices::widen(dtype_, slot_at(*master_, first_element), values.data(), count);
}

Step Optimizer::make_step(std::uint64_t number, std::optional<double> gradient_norm) const {
  Step step{number, 1};
  if (settings_.clip_norm && gradient_norm && std::isfinite(*gradient_norm) && *gradient_norm > *settings_.clip_norm)
    step.scale = *settings_.clip_norm / *gradient_norm;
  return step;
}

Step Optimizer::begin_step(std::optional<double> gradient_norm) { return make_step(++steps_, gradient_norm); }

void Optimizer::apply(Step const& step, std::span<std::byte> values, std::uint64_t first_element, Gradient gradient) {
  CHORUS_ASSERT(state_ == State::here, "the state is here");
  if (!row_steps_) return run(rule(step, gradient.dtype), values, first_element, gradient);
  auto const value_bytes = element_bytes(dtype_), gradient_bytes = element_bytes(gradient.dtype);
  auto const end = first_element + values.size() / value_bytes;
  for (auto at = first_element; at < end;) {
    auto const [count, own] = portion(step, at, end);
    auto const from = at - first_element;
    run(rule(own, gradient.dtype), values.subspan(from * value_bytes, count * value_bytes), at,
        {gradient.bytes.subspan(from * gradient_bytes, count * gradient_bytes), gradient.dtype});
    at += count;
  }
}

Optimizer::Portion Optimizer::portion(Step const& step, std::uint64_t first_element, std::uint64_t end) const {
  CHORUS_ASSERT(first_element <= end && end <= elements_, "the elements are the shard's");
  if (!row_steps_ || first_element == end) return {end - first_element, step};
  auto const own = row_steps(first_element / row_elements_);
  auto next = first_element;
  while (next < end && row_steps(next / row_elements_) == own)
    next = std::min(end, (next / row_elements_ + 1) * row_elements_);
  return {next - first_element, {step.number + own, step.scale}};
}

Coefficients Optimizer::coefficients(Step const& step) const { return make_coefficients(*method_, settings_, step); }

bool Optimizer::shapes_gradient(Coefficients const& coefficients) const {
  return parameters::shapes_gradient(*method_, coefficients);
}

void Optimizer::step(std::span<std::byte> values, Gradient gradient, std::optional<double> gradient_norm) {
  if (wants_norm() && !gradient_norm) gradient_norm = std::sqrt(squared_norm(gradient));
  apply(begin_step(gradient_norm), values, 0, gradient);
}

std::uint64_t Optimizer::row_steps(std::uint64_t row) const {
  std::uint64_t steps = 0;
  std::memcpy(&steps, slots_[*row_steps_].bytes.data() + row * sizeof steps, sizeof steps);
  return steps;
}

void Optimizer::step_rows(std::span<std::byte> values, std::span<std::uint64_t const> rows, Gradient gradient,
                          std::optional<double> gradient_norm) {
  CHORUS_ASSERT(row_elements_ != 0 && state_ == State::here, "the optimizer was made with rows, and keeps its state");
  if (wants_norm() && !gradient_norm) gradient_norm = std::sqrt(squared_norm(gradient));
  auto const value_bytes = row_elements_ * element_bytes(dtype_);
  auto const gradient_bytes = row_elements_ * element_bytes(gradient.dtype);
  CHORUS_ASSERT(gradient.bytes.size() == rows.size() * gradient_bytes, "the gradient has a row for each");
  if (rows.empty()) return;
  std::vector<RowArray> arrays{{values.data(), value_bytes}};
  for (auto const& slot : slots_)
    arrays.push_back({slot.bytes.data(), slot.bytes.size() / (elements_ / row_elements_)});
  Step step;
  Rule rule;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i + rows_ahead < rows.size())
      for (auto const& array : arrays)
        fetch_soon(array.data + rows[i + rows_ahead] * array.row_bytes, std::min(array.row_bytes, fetched_bytes));
    // Most rows have the same number of steps as the row before.
    if (auto const own = begin_row_step(rows[i], gradient_norm); i == 0 || own != step) {
      step = own;
      rule = this->rule(step, gradient.dtype);
    }
    run(rule, values.subspan(rows[i] * value_bytes, value_bytes), rows[i] * row_elements_,
        {gradient.bytes.subspan(i * gradient_bytes, gradient_bytes), gradient.dtype});
  }
}

Step Optimizer::begin_row_step(std::uint64_t row, std::optional<double> gradient_norm) {
  CHORUS_ASSERT(row < elements_ / row_elements_, "the rows are the shard's");
  if (!row_steps_) return make_step(steps_ + 1, gradient_norm);
  auto const own = row_steps(row) + 1;
  std::memcpy(slots_[*row_steps_].bytes.data() + row * sizeof own, &own, sizeof own);
  return make_step(steps_ + own, gradient_norm);
}

void Optimizer::add(std::span<std::byte> values, Gradient gradient) const {
  auto const count = values.size() / element_bytes(dtype_);
  bool const is_wide = gradient.dtype != dtype_;
  auto const* const addend = gradient.bytes.data();
  std::byte const* const sources[] = {is_wide ? addend : values.data(), is_wide ? values.data() : addend};
  auto* const sum = values.data();
  devices::Reducer(ReduceOp::sum, dtype_).run({sources, 2, &sum, 1, count}, {.wide_source = is_wide});
}

Optimizer::Rule Optimizer::rule(Step const& step, Dtype gradient) const {
  CHORUS_ASSERT(gradient == dtype_ || (is_half(dtype_) && gradient == Dtype::f32), "the dtypes fit");
  if (!method_) return {};
  auto const c = coefficients(step);
  return {c, best_kernels().step[static_cast<std::size_t>(*method_)][static_cast<std::size_t>(dtype_)]
                                [gradient != dtype_ ? 1 : 0][shapes_gradient(c) ? 1 : 0]};
}

void Optimizer::run(Rule const& rule, std::span<std::byte> values, std::uint64_t first_element, Gradient gradient) {
  auto const count = values.size() / element_bytes(dtype_);
  CHORUS_ASSERT(first_element <= elements_ && count <= elements_ - first_element, "the elements are the shard's");
  CHORUS_ASSERT(gradient.bytes.size() == count * element_bytes(gradient.dtype), "as many gradients as values");
  if (count == 0) return;
  if (rule.loop == nullptr) return add(values, gradient);
  StepArguments arguments;
  arguments.values = values.data();
  arguments.gradient = gradient.bytes.data();
  arguments.elements = count;
  arguments.coefficients = rule.coefficients;
  // The method's own arrays come first.
  auto const own = master_.value_or(row_steps_.value_or(slots_.size()));
  if (own > 0) arguments.first = slot_at(0, first_element);
  if (own > 1) arguments.second = slot_at(1, first_element);
  if (master_) arguments.master = slot_at(*master_, first_element);
  rule.loop(arguments);
}

double squared_norm(Gradient gradient) {
  CHORUS_ASSERT(is_float(gradient.dtype), "norms are of floating-point elements");
  constexpr std::size_t block = 1024;  // a multiple of 16, the number of partial sums
  double sums[16] = {};
  auto const count = gradient.bytes.size() / element_bytes(gradient.dtype);
  if (is_half(gradient.dtype)) {
    alignas(64) std::array<float, block> wide;
    auto* const wide_bytes = reinterpret_cast<std::byte*>(wide.data());
    for (std::uint64_t at = 0; at < count; at += block) {
      auto const part = std::min<std::uint64_t>(block, count - at);
      devices::widen(gradient.dtype, wide_bytes, gradient.bytes.data() + at * 2, part);
      best_kernels().squares[static_cast<std::size_t>(Dtype::f32)](wide_bytes, part, sums);
    }
  } else {
    best_kernels().squares[static_cast<std::size_t>(gradient.dtype)](gradient.bytes.data(), count, sums);
  }
  for (std::size_t distance = 8; distance > 0; distance /= 2)
    for (std::size_t lane = 0; lane < distance; ++lane) sums[lane] += sums[lane + distance];
  return sums[0];
}

}  // namespace chorus::parameters
