#include "collectives/model/learned_costs.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

namespace chorus::model {
namespace {

// What a run's logarithm scatters by on a machine that one knows nothing of, and how many runs that counts as.
constexpr double scatter_before = 0.2;
constexpr double runs_before = 4;
// Two means that are so many of their standard errors apart are told apart.
constexpr double errors_apart = 2;
// The first says little: see finished().
constexpr std::uint64_t runs_until_known = 2;

}  // namespace

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
  // A mean of logarithms: twice too slow and twice too fast even out. The first run of a plan, for which connections
  // are opened and nothing is in a cache, is forgotten when there is a second.
  auto const runs = ++learned.runs;
  auto const weight = runs == 2 ? 1 : std::max(newest_weight, 1.0 / static_cast<double>(runs));
  auto const off = std::log(seconds / predicted_seconds) - learned.log_ratio;
  learned.log_ratio += weight * off;
  learned.variance = (1 - weight) * (learned.variance + weight * off * off);
  if (learned_.size() <= places_max) return;
  learned_.erase(recent_.back());
  recent_.pop_back();
}

double LearnedCosts::uncertainty(Learned const* learned) {
  if (learned == nullptr) return scatter_before * scatter_before;
  // A mean in which the newest counts w is as good as one of 2/w - 1 runs that count alike.
  auto const runs = std::min(static_cast<double>(learned->runs), 2 / newest_weight - 1);
  auto const variance =
      (runs_before * scatter_before * scatter_before + runs * learned->variance) / (runs_before + runs);
  return variance / runs;
}

Choice LearnedCosts::corrected(Place const& place, Choice choice, bool is_auto) const {
  struct Seen {
    Candidate candidate;
    double predicted_s;  // by the model, uncorrected
    Learned const* learned;
    std::size_t position;  // in the model's order: decides between equals
  };
  std::vector<Seen> all;
  std::vector<double> ratios;
  auto runs = std::uint64_t{0};
  for (auto const& candidate : choice.considered) {
    auto const found = learned_.find(key_of(place, candidate.spec));
    all.push_back({candidate, candidate.cost.seconds, found == learned_.end() ? nullptr : &found->second, all.size()});
    if (found == learned_.end()) continue;
    ratios.push_back(std::exp(found->second.log_ratio));
    runs += found->second.runs;
  }
  if (ratios.empty()) return choice;
  auto const least_predicted_s = std::ranges::min(all, {}, &Seen::predicted_s).predicted_s;
  std::ranges::nth_element(ratios, ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2));
  auto const middle = ratios[ratios.size() / 2];
  for (auto& seen : all)
    seen.candidate.cost.seconds *= seen.learned != nullptr ? std::exp(seen.learned->log_ratio) : middle;
  std::ranges::sort(all, {}, [](Seen const& seen) { return std::pair(seen.candidate.cost.seconds, seen.position); });
  for (std::size_t i = 0; i < all.size(); ++i) choice.considered[i] = all[i].candidate;

  auto const runs_of = [](Seen const& seen) { return seen.learned == nullptr ? 0 : seen.learned->runs; };
  auto chosen = all.cbegin();
  bool is_trial = false;
  if (!is_auto) {
    chosen =
        std::find_if(all.cbegin(), all.cend(), [&](auto const& seen) { return seen.candidate.spec == choice.spec; });
    if (chosen == all.cend()) return choice;
  } else if (runs % runs_per_trial == runs_per_trial - 1) {
    auto const& best = all.front();
    auto const enough = std::max(trials, runs / runs_until_tried_again);
    auto const is_worth_it = [&](Seen const& seen) {
      auto const slower = seen.candidate.cost.seconds / best.candidate.cost.seconds;
      if (slower <= worth_a_trial && runs_of(seen) < enough) return true;
      if (runs_of(seen) < runs_until_known && seen.predicted_s <= worth_a_trial * least_predicted_s) return true;
      if (seen.learned == nullptr) return false;
      auto const error = std::sqrt(uncertainty(seen.learned) + uncertainty(best.learned));
      return slower * worth_knowing < std::exp(errors_apart * error);
    };
    for (auto seen = all.cbegin() + 1; seen != all.cend(); ++seen)
      if (is_worth_it(*seen) && (chosen == all.cbegin() || runs_of(*seen) < runs_of(*chosen))) chosen = seen;
    is_trial = chosen != all.cbegin();
  }
  auto const& taken = chosen->candidate;
  bool const changed = taken.spec != choice.spec;
  choice.spec = taken.spec;
  choice.cost = taken.cost;
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), "; refined by %llu finished %s%s: %.3g ms%s",
                static_cast<unsigned long long>(runs), runs == 1 ? "run" : "runs",
                changed ? (" to " + taken.spec.algorithm).c_str() : "", taken.cost.seconds * 1e3,
                is_trial ? ", to see whether it is better" : "");
  choice.reason += text.data();
  return choice;
}

}  // namespace chorus::model
