#include "worker/bench/modes/refine.hpp"

#include <algorithm>

#include "collectives/model/choice/learned_costs.hpp"

namespace chorus::bench {

Status refine(std::vector<Contender>& contenders, Task const& task, std::uint32_t runs, RunOnce const& run) {
  model::Choice model_choice;
  model_choice.spec = contenders.front().spec;
  for (auto const& [spec, predicted_seconds] : contenders)
    model_choice.considered.push_back({spec, {.seconds = predicted_seconds}});
  auto const contender = [&](plan::Spec const& spec) { return std::ranges::find(contenders, spec, &Contender::spec); };

  model::LearnedCosts costs;
  model::LearnedCosts::Place const place{"bench", 1, task.op, task.bytes()};
  for (std::uint32_t i = 0; i < runs; ++i) {
    auto const spec = costs.corrected(place, model_choice, true).spec;
    auto const seconds = run(spec);
    if (seconds.has_error()) return seconds.error();
    costs.finished(place, spec, contender(spec)->predicted_seconds, *seconds);
  }
  // The cheapest, also if another plan's trial is due.
  auto const refined = costs.corrected(place, std::move(model_choice), true).considered.front().spec;
  std::iter_swap(contenders.begin(), contender(refined));
  return ok();
}

}  // namespace chorus::bench
