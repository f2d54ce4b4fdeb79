#include "worker/bench/optimizer_steps.hpp"

#include <cmath>
#include <cstring>
#include <string>

#include "worker/bench/duel.hpp"
#include "worker/bench/hand_written_steps.hpp"
#include "worker/parameters/optimizers/optimizer.hpp"

namespace chorus::bench {
namespace {

using parameters::Optimizer;

api::OptimizerSettings settings_of(std::string_view optimizer) {
  using S = HandWrittenSettings;
  api::OptimizerSettings settings;
  settings.name = optimizer;
  settings.learning_rate = S::learning_rate;
  if (optimizer == "momentum" || optimizer == "nesterov") settings.momentum = S::momentum;
  if (optimizer == "adagrad" || optimizer == "adam" || optimizer == "adamw") settings.epsilon = S::epsilon;
  if (optimizer == "adam" || optimizer == "adamw") {
    settings.beta1 = S::beta1;
    settings.beta2 = S::beta2;
  }
  if (optimizer == "adamw") settings.weight_decay = S::weight_decay;
  return api::complete(settings, "").value();
}

// Both step the same values by the same gradient, over and over; a gradient of small numbers, so that nothing
// overflows.
StepSpeed measure(HandWrittenStep const& by_hand, std::uint64_t bytes, double seconds) {
  auto const elements = bytes / sizeof(float);
  Vector gradient(bytes), ours(bytes), theirs(bytes), first(bytes), second(bytes);
  auto* const gradient_at = reinterpret_cast<float*>(gradient.data());
  auto* const theirs_at = reinterpret_cast<float*>(theirs.data());
  for (std::uint64_t i = 0; i < elements; ++i) {
    gradient_at[i] = static_cast<float>(static_cast<int>(i % 61) - 30) / 1024;
    theirs_at[i] = static_cast<float>(i % 7);
  }
  std::memcpy(ours.data(), theirs.data(), bytes);

  auto optimizer = Optimizer::make(settings_of(by_hand.optimizer), Dtype::f32, elements).value();
  auto const chorus = [&] { optimizer.step({ours.data(), bytes}, {{gradient.data(), bytes}, Dtype::f32}); };
  double step = 0;
  auto const hand = [&] {
    by_hand.loop(theirs_at, gradient_at, reinterpret_cast<float*>(first.data()),
                 reinterpret_cast<float*>(second.data()), elements, ++step);
  };
  auto const result = duel(chorus, hand, seconds);
  bool same_bits = std::memcmp(ours.data(), theirs.data(), bytes) == 0;
  auto const state = optimizer.state();
  if (!state.empty()) same_bits = same_bits && std::memcmp(state[0].bytes.data(), first.data(), bytes) == 0;
  if (state.size() > 1) same_bits = same_bits && std::memcmp(state[1].bytes.data(), second.data(), bytes) == 0;
  auto const moved_GB = 1e-9 * static_cast<double>(bytes * (by_hand.arrays_read + by_hand.arrays_written));
  return {by_hand.optimizer, bytes, moved_GB / result.ours_s, moved_GB / result.theirs_s, same_bits};
}

}  // namespace

std::vector<StepSpeed> measure_steps(std::vector<std::uint64_t> const& bytes, double seconds) {
  std::vector<StepSpeed> speeds;
  for (auto const& by_hand : hand_written_steps())
    for (auto const size : bytes) speeds.push_back(measure(by_hand, size, seconds));
  return speeds;
}

}  // namespace chorus::bench
