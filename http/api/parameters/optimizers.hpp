// Settings of optimizers and initializers: the messages, and the one table of all methods, settings and ranges. The
// coordinator and the workers check requests by the table, and docs/reference/optimizers.md is printed from it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "http/json/problem.hpp"

namespace chorus::api {

// Settings of an optimizer: {"name":"adam","learning_rate":0.001}. complete() gives absent settings their defaults;
// settings that the optimizer does not have stay absent. A part of other messages, and a message of its own.
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

// Values of a row before its first push: {"name":"uniform","low":-0.05,"high":0.05,"seed":7}.
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

// Returns the settings with every default filled in, or invalid_field with one of errors[] for each mistake: an unknown
// name (the problem lists the known ones), a setting that this optimizer does not have, a value out of range. `pointer`
// is the place of the settings in the request: "/optimizer", or "" if they are the whole request.
[[nodiscard]] http::Checked<OptimizerSettings> complete(OptimizerSettings settings, std::string_view pointer);
[[nodiscard]] http::Checked<InitializerSettings> complete(InitializerSettings settings, std::string_view pointer);

// Decodes and completes settings.
[[nodiscard]] http::Checked<OptimizerSettings> parse_optimizer(std::string_view json);
[[nodiscard]] http::Checked<InitializerSettings> parse_initializer(std::string_view json);

// A row of the table. A value v is in range if it is finite and min <= v <= max, with < at an open end.
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
