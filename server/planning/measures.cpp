#include "server/planning/measures.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "collectives/model/time/fold.hpp"

namespace chorus::planning {
namespace {

constexpr std::uint64_t bytes = std::uint64_t{1} << 30;  // divisible into blocks and halves of 64 ranks
constexpr auto every_rank = std::numeric_limits<std::uint64_t>::max() / 2;

model::Constants only(double alpha_s, double beta, double gamma, std::uint64_t segment_bytes) {
  model::Constants constants;
  for (auto& link : constants.level) link = {alpha_s, beta};
  constants.gamma_s_per_byte = gamma;
  constants.segment_bytes = segment_bytes;
  return constants;
}

model::Cost folded(plan::Algorithm const& algorithm, plan::Spec const& spec, model::Constants const& constants) {
  std::vector<Locality> const localities(spec.ranks);
  model::Network const network(localities, constants);
  return model::fold(algorithm, spec, network, bytes, 1, every_rank);
}

Formula formula(plan::Algorithm const& algorithm, plan::Spec const& spec, std::uint64_t segment_bytes) {
  constexpr auto per_byte = 1.0 / static_cast<double>(bytes);
  Formula formula;
  formula.alpha = folded(algorithm, spec, only(1, 0, 0, segment_bytes)).seconds;
  if (spec.op == Op::barrier) return formula;
  formula.beta = folded(algorithm, spec, only(0, per_byte, 0, segment_bytes)).seconds;
  if (reduces(spec.op)) formula.gamma = folded(algorithm, spec, only(0, 0, per_byte, segment_bytes)).seconds;
  return formula;
}

std::string number(double value) {
  std::array<char, 32> text{};
  auto const rounded = std::round(value * 100) / 100;
  std::snprintf(text.data(), text.size(), rounded == std::floor(rounded) ? "%.0f" : "%.2f", rounded);
  return text.data();
}

}  // namespace

std::string to_text(Formula const& formula) {
  std::string text;
  auto const add = [&](double factor, std::string const& unit) {
    if (factor < 0.005) return;
    text += text.empty() ? "" : " + ";
    text += (number(factor) == "1" ? "" : number(factor) + " ") + unit;
  };
  add(formula.alpha, "α");
  add(formula.beta, "nβ");
  add(formula.gamma, "nγ");
  return text.empty() ? "0" : text;
}

Measure measure(plan::Algorithm const& algorithm, plan::Spec const& spec) {
  auto const counted = folded(algorithm, spec, only(1, 0, 0, bytes));
  Measure measure;
  measure.steps = counted.rounds;
  measure.sent = spec.op == Op::barrier ? 0 : static_cast<double>(counted.bytes_per_rank) / static_cast<double>(bytes);
  measure.whole = formula(algorithm, spec, bytes);
  measure.segmented = formula(algorithm, spec, 1);
  return measure;
}

}  // namespace chorus::planning
