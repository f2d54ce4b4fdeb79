// Which optimizer a parameter has, with which settings, and how rows begin: as messages, and the one table that says
// what there is. The table checks requests at the coordinator and at the workers, and is printed into
// docs/reference/optimizers.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "http/json/problem.hpp"

namespace chorus::api {

// {"name":"adam","learning_rate":0.001}. What is absent has the default of the table once it has been completed; what
// an optimizer does not know stays absent. A member of other messages, and a message of its own; encode prints it.
struct OptimizerSettings {
  std::string name = "none";
  std::optional<double> learning_rate;
  std::optional<double> momentum;
  std::optional<double> beta1;
  std::optional<double> beta2;
  std::optional<double> epsilon;
  std::optional<double> initial_accumulator;
  std::optional<double> weight_decay;
  std::optional<double> clip_norm;   // absent: gradients are not clipped
  std::optional<double> clip_value;  // likewise

  friend bool operator==(OptimizerSettings const&, OptimizerSettings const&) = default;
};

// {"name":"uniform","low":-0.05,"high":0.05,"seed":7}: what the elements of a row are before its first push.
struct InitializerSettings {
  std::string name = "zeros";
  std::optional<double> value;  // of constant
  std::optional<double> low;    // of uniform
  std::optional<double> high;
  std::optional<double> mean;  // of normal
  std::optional<double> deviation;
  std::optional<std::uint64_t> seed;  // of uniform and normal

  friend bool operator==(InitializerSettings const&, InitializerSettings const&) = default;
};

// Settings with every default filled in, or invalid_field with errors[] that point to each wrong one: an unknown name
// (the problem lists those that exist), a setting that this optimizer does not have, a value out of range. `pointer` is
// where the settings stand in the request: "/optimizer", or "" if they are all of it.
[[nodiscard]] http::Checked<OptimizerSettings> complete(OptimizerSettings settings, std::string_view pointer);
[[nodiscard]] http::Checked<InitializerSettings> complete(InitializerSettings settings, std::string_view pointer);

// decode and complete in one.
[[nodiscard]] http::Checked<OptimizerSettings> parse_optimizer(std::string_view json);
[[nodiscard]] http::Checked<InitializerSettings> parse_initializer(std::string_view json);

// The table. A value v is in range if min <= v <= max, or < where the end is open; every value is finite.
template <class Settings>
struct SettingRule {
  std::string_view name;
  std::optional<double> Settings::*member;
  double min, max;
  bool min_open, max_open;
  std::optional<double> fallback;  // none: stays absent
  std::string_view meaning;
};
template <class Settings>
struct MethodRule {
  std::string_view name;
  std::string_view meaning;  // the formula of an optimizer, with g the gradient and w the value
  std::span<SettingRule<Settings> const> settings;
};
[[nodiscard]] std::span<MethodRule<OptimizerSettings> const> optimizers();
[[nodiscard]] std::span<MethodRule<InitializerSettings> const> initializers();

// The tables as Markdown.
[[nodiscard]] std::string optimizers_table();
[[nodiscard]] std::string initializers_table();

}  // namespace chorus::api
