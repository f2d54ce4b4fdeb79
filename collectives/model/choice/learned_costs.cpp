#include "collectives/model/choice/learned_costs.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

namespace chorus::model {
namespace {

// Scatter of a run's logarithm on an unknown machine, and the number of runs that this prior counts as.
constexpr double scatter_before = 0.2;
constexpr double runs_before = 4;
// Two means are told apart if they differ by this many of their standard errors.
constexpr double errors_apart = 2;
// A plan that has begun this often and never ran warm is not tried again.
constexpr std::uint64_t beginnings = 2;

}  // namespace

LearnedCosts::Key LearnedCosts::key_of(Place const& place) {
  return {place.group, place.epoch, place.op, static_cast<unsigned>(std::bit_width(place.bytes)) / 2,
          place.compression ? to_string(*place.compression) : std::string()};
}

LearnedCosts::AtPlace& LearnedCosts::at(Place const& place) {
  auto const key = key_of(place);
  auto [found, is_new] = places_.try_emplace(key);
  auto& here = found->second;
  if (is_new) {
    recent_.push_front(key);
    here.position = recent_.begin();
  } else {
    recent_.splice(recent_.begin(), recent_, here.position);
  }
  if (places_.size() > places_max) {
    places_.erase(recent_.back());
    recent_.pop_back();
  }
  return here;
}

void LearnedCosts::failed(Place const& place, plan::Spec const& spec) {
  auto& here = at(place);
  ++here.runs;
  ++here.failed_runs;
  ++here.failures[spec];
  here.last = {};
}

void LearnedCosts::finished(Place const& place, plan::Spec const& spec, double predicted_seconds, double seconds) {
  if (!(predicted_seconds > 0) || !(seconds > 0)) return;
  auto& here = at(place);
  here.failures.erase(spec);
  auto& learned = here.plans[spec];
  bool const is_warm = here.last == spec;
  ++here.runs;
  here.last = spec;
  if (is_warm && !learned.is_warm) learned = {.is_warm = true};
  if (is_warm == learned.is_warm) {
    // A mean of logarithms, so that twice too slow and twice too fast cancel out.
    auto const weight = std::max(newest_weight, 1.0 / static_cast<double>(++learned.runs));
    auto const off = std::log(seconds / predicted_seconds) - learned.log_ratio;
    learned.log_ratio += weight * off;
    learned.variance = (1 - weight) * (learned.variance + weight * off * off);
  }
}

double LearnedCosts::uncertainty(Learned const* learned) {
  if (learned == nullptr) return scatter_before * scatter_before;
  // A mean in which the newest run has weight w is as good as one of 2/w - 1 equally weighted runs; runs in a row see
  // the same state of the machine and count as one observation.
  auto const runs = std::min(static_cast<double>(learned->runs), 2 / newest_weight - 1);
  auto const variance =
      (runs_before * scatter_before * scatter_before + runs * learned->variance) / (runs_before + runs);
  return variance / std::max(runs / static_cast<double>(runs_per_trial - 1), 1.0);
}

// Returns the number of the next run within its trial; empty if it is not part of a trial.
std::optional<std::uint64_t> LearnedCosts::turn_of_trial(std::uint64_t runs_so_far) {
  auto const round = runs_so_far < early_runs ? runs_per_round_early : runs_per_round;
  auto const turn = runs_so_far % round;
  if (turn < round - runs_per_trial) return std::nullopt;
  return turn - (round - runs_per_trial);
}

Choice LearnedCosts::corrected(Place const& place, Choice choice, bool is_auto) const {
  struct Seen {
    Candidate* candidate;  // candidate of the choice
    double predicted_s;    // by the model, uncorrected
    Learned const* learned;
    std::uint64_t failures;  // since the last success
    std::size_t position;    // in the model's order: decides between equals
  };
  auto const place_found = places_.find(key_of(place));
  if (place_found == places_.end()) return choice;
  auto const& [plans, failures, runs, failed_runs, last, position] = place_found->second;
  std::vector<Seen> all;
  std::vector<double> ratios;
  all.reserve(choice.considered.size());
  for (auto& candidate : choice.considered) {
    auto const found = plans.find(candidate.spec);
    auto const failed = failures.find(candidate.spec);
    all.push_back({&candidate, candidate.cost.seconds, found == plans.end() ? nullptr : &found->second,
                   failed == failures.end() ? 0 : failed->second, all.size()});
    if (found != plans.end()) ratios.push_back(std::exp(found->second.log_ratio));
  }
  if (ratios.empty()) return choice;
  auto const least_predicted_s = std::ranges::min(all, {}, &Seen::predicted_s).predicted_s;
  std::ranges::nth_element(ratios, ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2));
  auto const middle = ratios[ratios.size() / 2];
  for (auto& seen : all)
    seen.candidate->cost.seconds *= seen.learned != nullptr ? std::exp(seen.learned->log_ratio) : middle;
  std::ranges::sort(all, {}, [](Seen const& seen) { return std::pair(seen.candidate->cost.seconds, seen.position); });
  auto const in_this_order = [&all] {
    std::vector<Candidate> sorted;
    sorted.reserve(all.size());
    for (auto const& seen : all) sorted.push_back(std::move(*seen.candidate));
    return sorted;
  };

  auto const runs_of = [](Seen const& seen) { return seen.learned == nullptr ? 0 : seen.learned->runs; };
  // Plans that the model passed over as too close to its choice stay behind it until they have run.
  auto const favoured = std::ranges::find(all, choice.spec, [](Seen const& seen) { return seen.candidate->spec; });
  auto const is_passed_over = [&](Seen const& seen) {
    return favoured != all.cend() && seen.learned == nullptr && seen.predicted_s < favoured->predicted_s;
  };
  bool const any_works =
      std::ranges::any_of(all, [](Seen const& seen) { return seen.learned != nullptr && seen.failures == 0; });
  auto const usual = std::find_if_not(all.cbegin(), all.cend(), [&](Seen const& seen) {
    return is_passed_over(seen) || (any_works && seen.failures >= failures_max);
  });
  auto chosen = usual;
  bool is_trial = false;
  if (!is_auto) {
    chosen = favoured;
    if (chosen == all.cend()) {
      choice.considered = in_this_order();
      return choice;
    }
  } else if (auto const turn = turn_of_trial(runs)) {
    auto const& best = *usual;
    auto const slower = [&](Seen const& seen) { return seen.candidate->cost.seconds / best.candidate->cost.seconds; };
    auto const enough = std::max(trials, runs / runs_until_tried_again);
    auto const is_worth_it = [&](Seen const& seen) {
      if (seen.failures != 0) return false;
      if (slower(seen) <= worth_a_trial && runs_of(seen) < enough) return true;
      bool const was_an_equal = seen.predicted_s <= worth_a_trial * least_predicted_s;
      if (seen.learned == nullptr) return was_an_equal;
      if (!seen.learned->is_warm) return was_an_equal && runs_of(seen) < beginnings;
      auto const error = std::sqrt(uncertainty(seen.learned) + uncertainty(best.learned));
      return slower(seen) * worth_knowing < std::exp(errors_apart * error);
    };
    if (*turn == 0) {
      for (auto seen = all.cbegin(); seen != all.cend(); ++seen)
        if (seen != usual && is_worth_it(*seen) && (chosen == usual || runs_of(*seen) < runs_of(*chosen)))
          chosen = seen;
    } else {
      // A trial that has begun goes on.
      auto const begun = std::ranges::find(all, last, [](Seen const& seen) { return seen.candidate->spec; });
      if (begun != all.cend() && slower(*begun) <= worth_going_on) chosen = begun;
    }
    is_trial = chosen != usual;
  }
  auto const& taken = *chosen->candidate;
  bool const changed = taken.spec != choice.spec;
  choice.spec = taken.spec;
  choice.cost = taken.cost;
  auto const finished_runs = runs - failed_runs;
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), "; refined by %llu finished %s%s: %.3g ms%s",
                static_cast<unsigned long long>(finished_runs), finished_runs == 1 ? "run" : "runs",
                changed ? (" to " + taken.spec.algorithm).c_str() : "", taken.cost.seconds * 1e3,
                is_trial ? ", to see whether it is better" : "");
  choice.reason += text.data();
  choice.considered = in_this_order();
  return choice;
}

}  // namespace chorus::model
