#include "worker/bench/timing/contest.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace chorus::bench {
namespace {

constexpr double warmup_seconds = 0.2;

class Contest {
 public:
  Contest(std::size_t contenders, Pace const& pace, Iterate const& iterate)
      : pace_(pace), iterate_(iterate), samples_(contenders), state_(contenders) {}

  Result<std::vector<Sample>> run() {
    for (std::size_t c = 0; c < samples_.size(); ++c)
      if (auto const status = warm_up(c); status.has_error()) return status.error();
    std::vector<std::size_t> active(samples_.size());
    std::iota(active.begin(), active.end(), 0);
    while (!active.empty()) {
      for (auto const c : active)
        if (auto const status = turn(c); status.has_error()) return status.error();
      if (pace_.only_the_best) leave_behind(active);
      std::erase_if(active, [this](std::size_t c) { return finished(c); });
      // so that no contender is always first
      if (!active.empty()) std::rotate(active.begin(), active.begin() + 1, active.end());
    }
    return std::move(samples_);
  }

 private:
  struct State {
    double iteration_seconds = 0;  // about, when undisturbed
    double spent_seconds = 0;
    std::uint64_t turns = 0;
  };

  Status warm_up(std::size_t c) {
    auto const first = iterate_(c, 1);
    if (first.has_error()) return first.error();
    samples_[c].correct = first->correct;
    samples_[c].link = first->link;
    state_[c].iteration_seconds = first->seconds.front();
    auto const more = std::min(static_cast<double>(pace_.warmup) - 1, warmup_seconds / first->seconds.front());
    if (more < 1) return ok();
    auto const rest = iterate_(c, static_cast<std::uint64_t>(more));
    if (rest.has_error()) return rest.error();
    samples_[c].correct = samples_[c].correct && rest->correct;
    state_[c].iteration_seconds = median(rest->seconds);
    return ok();
  }

  Status turn(std::size_t c) {
    auto& sample = samples_[c];
    auto& state = state_[c];
    auto const left = static_cast<double>(pace_.iterations_max - sample.seconds.size());
    auto const fitting = std::max(pace_.turn_seconds / state.iteration_seconds, 1.0);
    auto const batch = iterate_(c, static_cast<std::uint64_t>(std::min(fitting, left)));
    if (batch.has_error()) return batch.error();
    sample.seconds.insert(sample.seconds.end(), batch->seconds.begin(), batch->seconds.end());
    sample.cpu_seconds += batch->cpu_seconds;
    sample.correct = sample.correct && batch->correct;
    state.spent_seconds += std::accumulate(batch->seconds.begin(), batch->seconds.end(), 0.0);
    state.iteration_seconds = std::min(state.iteration_seconds, median(batch->seconds));
    ++state.turns;
    return ok();
  }

  [[nodiscard]] bool finished(std::size_t c) const {
    return samples_[c].seconds.size() >= pace_.iterations_max ||
           (state_[c].spent_seconds >= pace_.seconds && state_[c].turns >= pace_.turns_min);
  }

  void leave_behind(std::vector<std::size_t>& active) const {
    std::vector<double> medians;
    for (auto const& sample : samples_) medians.push_back(median(sample.seconds));
    auto const best = *std::min_element(medians.begin(), medians.end());
    std::erase_if(active, [&](std::size_t c) {
      return is_hopeless(percentile(samples_[c].seconds, 0.25), best, state_[c].turns);
    });
  }

  Pace const& pace_;
  Iterate const& iterate_;
  std::vector<Sample> samples_;
  std::vector<State> state_;
};

}  // namespace

Result<std::vector<Sample>> contest(std::size_t contenders, Pace const& pace, Iterate const& iterate) {
  return Contest(contenders, pace, iterate).run();
}

double percentile(std::vector<double> values, double fraction) {
  std::sort(values.begin(), values.end());
  auto const rank = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(values.size())));
  return values[std::max<std::size_t>(rank, 1) - 1];
}

// With fewer turns more of a difference may be chance.
bool is_hopeless(double quartile_s, double best_median_s, std::uint64_t turns) {
  struct Limit {
    std::uint64_t turns;
    double ratio;
  };
  constexpr std::array limits{Limit{2, 4}, Limit{4, 2}, Limit{8, 1.5}, Limit{16, 1.25}};
  return std::any_of(limits.begin(), limits.end(), [&](Limit const& limit) {
    return turns >= limit.turns && quartile_s > limit.ratio * best_median_s;
  });
}

}  // namespace chorus::bench
