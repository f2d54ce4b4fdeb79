#include "http/api/parameters/optimizers.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "collectives/core/nearest_name.hpp"
#include "http/api/described.hpp"
#include "http/json/json_text.hpp"

namespace chorus::api {
namespace {

using OptimizerSetting = SettingRule<OptimizerSettings>;
using Method = MethodRule<OptimizerSettings>;

constexpr double small_max = 1e6;   // far below an overflow of f32
constexpr double large_max = 1e30;  // still representable in f32

constexpr OptimizerSetting learning_rate(double fallback) {
  return {"learning_rate", &OptimizerSettings::learning_rate, 0, small_max, false, false, fallback, "lr"};
}
constexpr OptimizerSetting weight_decay(double fallback, std::string_view meaning) {
  return {"weight_decay", &OptimizerSettings::weight_decay, 0, 1, false, false, fallback, meaning};
}
constexpr OptimizerSetting decayed_gradient = weight_decay(0, "decay: g + decay w is taken for g");
constexpr OptimizerSetting momentum{"momentum", &OptimizerSettings::momentum, 0, 1, false, true, 0.9, "mu"};
constexpr OptimizerSetting beta1{"beta1", &OptimizerSettings::beta1, 0, 1, false, true,
                                 0.9,     "of the mean of gradients"};
constexpr OptimizerSetting beta2{"beta2", &OptimizerSettings::beta2,     0, 1, false, true,
                                 0.999,   "of the mean of their squares"};
constexpr OptimizerSetting epsilon(double fallback) {
  return {"epsilon", &OptimizerSettings::epsilon, 1e-30, 1, false, false, fallback, "keeps the divisor from 0"};
}
constexpr OptimizerSetting initial_accumulator{
    "initial_accumulator", &OptimizerSettings::initial_accumulator, 0, small_max, false, false, 0.0,
    "what h begins with"};
constexpr OptimizerSetting clip_norm{"clip_norm",
                                     &OptimizerSettings::clip_norm,
                                     0,
                                     large_max,
                                     true,
                                     false,
                                     std::nullopt,
                                     "a push whose Euclidean norm is greater is scaled down to it"};
constexpr OptimizerSetting clip_value{"clip_value", &OptimizerSettings::clip_value,          0, large_max, true, false,
                                      std::nullopt, "then each element is limited to +-this"};

constexpr std::array sgd_settings{learning_rate(0.01), decayed_gradient, clip_norm, clip_value};
constexpr std::array momentum_settings{learning_rate(0.01), momentum, decayed_gradient, clip_norm, clip_value};
constexpr std::array adagrad_settings{learning_rate(0.01), epsilon(1e-10), initial_accumulator,
                                      decayed_gradient,    clip_norm,      clip_value};
constexpr std::array adam_settings{learning_rate(0.001), beta1,     beta2,     epsilon(1e-8),
                                   decayed_gradient,     clip_norm, clip_value};
constexpr std::array adamw_settings{learning_rate(0.001),
                                    beta1,
                                    beta2,
                                    epsilon(1e-8),
                                    weight_decay(0.01, "decay: w shrinks by lr decay w, beside the step"),
                                    clip_norm,
                                    clip_value};

constexpr std::array optimizer_methods{
    Method{"none", "w = w + g: pushes are summed", {}},
    Method{"sgd", "w = w - lr g", sgd_settings},
    Method{"momentum", "v = mu v + g; w = w - lr v", momentum_settings},
    Method{"nesterov", "v = mu v + g; w = w - lr (g + mu v)", momentum_settings},
    Method{"adagrad", "h = h + g g; w = w - lr g / (sqrt(h) + epsilon)", adagrad_settings},
    Method{"adam",
           "m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g g; w = w - lr m' / (sqrt(v') + epsilon), with "
           "m' = m / (1 - beta1^t), v' = v / (1 - beta2^t), t the number of the step",
           adam_settings},
    Method{"adamw", "as adam, but w = w - lr decay w - lr m' / (sqrt(v') + epsilon)", adamw_settings},
};

using Draw = SettingRule<InitializerSettings>;
using Drawing = MethodRule<InitializerSettings>;

constexpr Draw finite(std::string_view name, std::optional<double> InitializerSettings::*member, double fallback,
                      std::string_view meaning) {
  return {name, member, -large_max, large_max, false, false, fallback, meaning};
}
constexpr std::array constant_settings{finite("value", &InitializerSettings::value, 0, "of every element")};
constexpr std::array uniform_settings{finite("low", &InitializerSettings::low, -0.05, "the lower end"),
                                      finite("high", &InitializerSettings::high, 0.05, "the upper end, not below low")};
constexpr std::array normal_settings{
    finite("mean", &InitializerSettings::mean, 0, ""),
    Draw{"deviation", &InitializerSettings::deviation, 0, large_max, false, false, 0.05, "standard deviation"}};

constexpr std::array initializer_methods{
    Drawing{"zeros", "0", {}},
    Drawing{"constant", "one value", constant_settings},
    Drawing{"uniform", "evenly distributed, by `seed`", uniform_settings},
    Drawing{"normal", "normally distributed, by `seed`", normal_settings},
};

std::string number(double value) {
  std::string text;
  http::append_number(text, value);
  return text;
}

template <class Settings>
std::string range_text(SettingRule<Settings> const& rule) {
  auto text = "from " + number(rule.min) + (rule.min_open ? " (excluded)" : "");
  return text + " to " + number(rule.max) + (rule.max_open ? " (excluded)" : "");
}

template <class Settings>
bool is_in_range(SettingRule<Settings> const& rule, double value) {
  bool const above = rule.min_open ? value > rule.min : value >= rule.min;
  bool const below = rule.max_open ? value < rule.max : value <= rule.max;
  return std::isfinite(value) && above && below;
}

template <class Range>
std::string join_names(Range const& rules) {
  std::string text;
  for (auto const& rule : rules) text += (text.empty() ? "" : ", ") + std::string(rule.name);
  return text;
}

// Collects the mistakes in the settings of one request.
class Complaints {
 public:
  explicit Complaints(std::string_view pointer) : pointer_(pointer) {}
  void add(std::string_view setting, std::string detail) {
    errors_.push_back({pointer_ + "/" + std::string(setting), std::move(detail)});
  }
  [[nodiscard]] std::optional<http::Problem> problem() {
    if (errors_.empty()) return std::nullopt;
    http::Problem problem(http::ProblemCode::invalid_field, errors_.front().pointer + ": " + errors_.front().detail);
    problem.errors = std::move(errors_);
    return problem;
  }

 private:
  std::string pointer_;
  std::vector<http::FieldError> errors_;
};

template <class Settings>
MethodRule<Settings> const* find_method(std::span<MethodRule<Settings> const> methods, std::string const& name,
                                        std::string_view kind, Complaints& complaints) {
  for (auto const& method : methods)
    if (method.name == name) return &method;
  std::vector<std::string_view> names;
  for (auto const& method : methods) names.push_back(method.name);
  complaints.add("name", unknown_name(kind, name, names));
  return nullptr;
}

// Gives absent settings of this method their defaults; complains about values out of range, and about settings that
// only other methods have.
template <class Settings>
void apply(std::span<MethodRule<Settings> const> methods, MethodRule<Settings> const& method, Settings& settings,
           Complaints& complaints) {
  for (auto const& rule : method.settings) {
    auto& value = settings.*rule.member;
    if (!value) value = rule.fallback;
    if (value && !is_in_range(rule, *value))
      complaints.add(rule.name, "expected a number " + range_text(rule) + ", found " + number(*value));
  }
  std::vector<std::string_view> refused;
  for (auto const& other : methods)
    for (auto const& rule : other.settings) {
      auto const is_same = [&](auto const& own) { return own.member == rule.member; };
      if (!(settings.*rule.member) || std::any_of(method.settings.begin(), method.settings.end(), is_same)) continue;
      if (std::find(refused.begin(), refused.end(), rule.name) != refused.end()) continue;
      refused.push_back(rule.name);
      complaints.add(rule.name, std::string(method.name) + " does not have this; it has " +
                                    (method.settings.empty() ? "no settings" : join_names(method.settings)));
    }
}

template <class Settings>
std::string table(std::string_view heading, std::span<MethodRule<Settings> const> methods) {
  auto text = "| " + std::string(heading) + " | setting | default | range | |\n|---|---|---|---|---|\n";
  for (auto const& method : methods) {
    text += "| `" + std::string(method.name) + "` | | | | " + std::string(method.meaning) + " |\n";
    for (auto const& rule : method.settings)
      text += "| | `" + std::string(rule.name) + "` | " + (rule.fallback ? number(*rule.fallback) : "not done") +
              " | " + range_text(rule) + " | " + std::string(rule.meaning) + " |\n";
  }
  return text;
}

}  // namespace

std::span<MethodRule<OptimizerSettings> const> optimizers() { return optimizer_methods; }
std::span<MethodRule<InitializerSettings> const> initializers() { return initializer_methods; }

http::Checked<OptimizerSettings> complete(OptimizerSettings settings, std::string_view pointer) {
  Complaints complaints(pointer);
  if (auto const* const method = find_method(optimizers(), settings.name, "optimizer", complaints))
    apply(optimizers(), *method, settings, complaints);
  if (auto problem = complaints.problem()) return std::move(*problem);
  return settings;
}

http::Checked<InitializerSettings> complete(InitializerSettings settings, std::string_view pointer) {
  Complaints complaints(pointer);
  if (auto const* const method = find_method(initializers(), settings.name, "initializer", complaints)) {
    apply(initializers(), *method, settings, complaints);
    bool const draws = settings.name == "uniform" || settings.name == "normal";
    if (!draws && settings.seed) complaints.add("seed", settings.name + " draws nothing");
    if (draws && !settings.seed) settings.seed = 0;
    if (settings.name == "uniform" && *settings.high < *settings.low)
      complaints.add("high", "expected a number that is not below low");
  }
  if (auto problem = complaints.problem()) return std::move(*problem);
  return settings;
}

http::Checked<OptimizerSettings> parse_optimizer(std::string_view json) {
  auto decoded = http::decode<OptimizerSettings>(json);
  if (decoded.has_error()) return decoded;
  return complete(std::move(*decoded), "");
}

http::Checked<InitializerSettings> parse_initializer(std::string_view json) {
  auto decoded = http::decode<InitializerSettings>(json);
  if (decoded.has_error()) return decoded;
  return complete(std::move(*decoded), "");
}

std::string optimizers_table() { return table("optimizer", optimizers()); }
std::string initializers_table() { return table("initializer", initializers()); }

}  // namespace chorus::api

CHORUS_HTTP_MESSAGE(chorus::api::OptimizerSettings)
CHORUS_HTTP_MESSAGE(chorus::api::InitializerSettings)
