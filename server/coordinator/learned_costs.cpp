#include "server/coordinator/learned_costs.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

namespace chorus::coordinator {

LearnedCosts::Key LearnedCosts::key_of(Place const& place, plan::Spec const& spec) {
  auto const size_class = static_cast<unsigned>(std::bit_width(place.bytes)) / 2;
  return {place.group, place.epoch, place.op, size_class, to_string(spec)};
}

void LearnedCosts::finished(Place const& place, plan::Spec const& spec, double predicted_seconds, double seconds) {
  if (!(predicted_seconds > 0) || !(seconds > 0)) return;
  auto const key = key_of(place, spec);
  auto [found, is_new] = learned_.try_emplace(key);
  auto& learned = found->second;
  if (is_new) {
    recent_.push_front(key);
    learned.position = recent_.begin();
  } else {
    recent_.splice(recent_.begin(), recent_, learned.position);
  }
  // A mean of logarithms: twice too slow and twice too fast even out.
  auto const weight = std::max(newest_weight, 1.0 / static_cast<double>(++learned.runs));
  learned.ratio = std::exp((1 - weight) * std::log(learned.ratio) + weight * std::log(seconds / predicted_seconds));
  if (learned_.size() <= places_max) return;
  learned_.erase(recent_.back());
  recent_.pop_back();
}

model::Choice LearnedCosts::corrected(Place const& place, model::Choice choice, bool is_auto) const {
  struct Seen {
    model::Candidate candidate;
    Learned const* learned;
    std::size_t position;  // in the model's order: decides between equals
  };
  std::vector<Seen> all;
  std::vector<double> ratios;
  auto runs = std::uint64_t{0};
  for (auto& candidate : choice.considered) {
    auto const found = learned_.find(key_of(place, candidate.spec));
    all.push_back({std::move(candidate), found == learned_.end() ? nullptr : &found->second, all.size()});
    if (found == learned_.end()) continue;
    ratios.push_back(found->second.ratio);
    runs += found->second.runs;
  }
  if (ratios.empty()) {
    for (std::size_t i = 0; i < all.size(); ++i) choice.considered[i] = std::move(all[i].candidate);
    return choice;
  }
  std::ranges::nth_element(ratios, ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2));
  auto const middle = ratios[ratios.size() / 2];
  for (auto& seen : all) seen.candidate.cost.seconds *= seen.learned != nullptr ? seen.learned->ratio : middle;
  std::ranges::sort(all, {}, [](Seen const& seen) { return std::pair(seen.candidate.cost.seconds, seen.position); });
  for (std::size_t i = 0; i < all.size(); ++i) choice.considered[i] = std::move(all[i].candidate);

  auto const chosen =
      is_auto ? choice.considered.begin()
              : std::ranges::find(choice.considered, choice.spec, [](model::Candidate const& c) { return c.spec; });
  if (chosen == choice.considered.end()) return choice;
  bool const changed = chosen->spec != choice.spec;
  choice.spec = chosen->spec;
  choice.cost = chosen->cost;
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), "; refined by %llu finished %s%s: %.3g ms",
                static_cast<unsigned long long>(runs), runs == 1 ? "run" : "runs",
                changed ? (" to " + chosen->spec.algorithm).c_str() : "", chosen->cost.seconds * 1e3);
  choice.reason += text.data();
  return choice;
}

}  // namespace chorus::coordinator
