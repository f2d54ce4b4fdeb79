// LearnedCosts: corrects predictions by the durations of finished runs.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>

#include "collectives/model/choice/select.hpp"

namespace chorus::model {

// A value without a clock; not thread-safe. Remembers the last `places_max` places: a place is a group's epoch, an
// operation, a size class (powers of four) and a compression.
//
// A run right after one of another plan can take twice as long as those that follow it (connections, caches, sleeping
// threads), and the first run of all even longer. So plans are compared by *warm* runs, which follow one of the same
// plan; others count for a plan only until it has a warm one. A machine with more ranks than cores is fast or slow for
// dozens of runs in a row, whatever the plan, because of the ranks that share a core. So plans are tried several times
// in a row, and these runs count as one observation.
class LearnedCosts {
 public:
  static constexpr std::size_t places_max = 1024;
  // Weight of the newest run against all earlier ones, after the first few runs.
  static constexpr double newest_weight = 1.0 / 16;
  // Predictions within this factor are equal as far as the model can tell.
  static constexpr double worth_a_trial = 1.5;
  // The last `runs_per_trial` runs of every round are a trial of the plan that ran least, among
  // - plans without a warm run, not begun often, whose uncorrected prediction is equal to that of the chosen plan;
  // - plans whose corrected prediction is equal, that ran fewer than `trials` times or so rarely that it may have been
  //   bad luck;
  // - plans not yet told apart from the best: they may be better by `worth_knowing`, given the scatter of their runs.
  // Early knowledge pays longest: half of the first `early_runs` are trials if there is something to try, a quarter
  // later.
  static constexpr std::uint64_t runs_per_trial = 4;
  static constexpr std::uint64_t early_runs = 256;
  static constexpr std::uint64_t runs_per_round_early = 8;
  static constexpr std::uint64_t runs_per_round = 16;
  static constexpr std::uint64_t trials = 4;
  static constexpr std::uint64_t runs_until_tried_again = 64;
  static constexpr double worth_knowing = 1.05;
  // A trial is broken off if its last run was slower than the best by this factor.
  static constexpr double worth_going_on = 3;
  // The usual plan gives way to one whose last run succeeded after this many failures in a row.
  static constexpr std::uint64_t failures_max = 3;

  struct Place {
    std::string group;
    std::uint32_t epoch = 0;
    Op op = Op::all_reduce;
    std::uint64_t bytes = 0;
    std::optional<Compression> compression = std::nullopt;
  };

  // Records a run of `spec`; `predicted_seconds` is the model's, uncorrected. Both times are positive.
  void finished(Place const& place, plan::Spec const& spec, double predicted_seconds, double seconds);
  // Records a run of `spec` that failed for a reason that may lie with the plan. A trial ends, and there is none of
  // this plan again until a run of it succeeds.
  void failed(Place const& place, plan::Spec const& spec);

  // Returns the choice with corrected predictions, sorted again. Runs of the same plan at this size correct a plan. The
  // median correction of the others corrects a plan without runs, so that a slow machine does not make all such plans
  // look better. With `is_auto` the first plan is chosen, or one whose trial is due, and the reason tells it. Without
  // runs the choice is unchanged.
  [[nodiscard]] Choice corrected(Place const& place, Choice choice, bool is_auto) const;

 private:
  struct Key {
    std::string group;
    std::uint32_t epoch;
    Op op;
    unsigned size_class;
    std::string compression;
    auto operator<=>(Key const&) const = default;
  };
  struct Learned {
    double log_ratio = 0;  // of seconds / predicted: a mean in which newer runs count more
    double variance = 0;   // of a run's logarithm about that mean
    std::uint64_t runs = 0;
    bool is_warm = false;  // the counted runs are warm
  };
  struct AtPlace {
    std::map<plan::Spec, Learned> plans;
    std::map<plan::Spec, std::uint64_t> failures;  // of a plan since its last success
    std::uint64_t runs = 0;                        // all runs, including those that no longer count
    std::uint64_t failed_runs = 0;                 // of these
    plan::Spec last;                               // the plan of the newest run; none if it failed
    std::list<Key>::iterator position;
  };
  AtPlace& at(Place const& place);
  // Returns the squared standard error of the mean; a plan without runs has that of a plan with a single run.
  static double uncertainty(Learned const* learned);
  static std::optional<std::uint64_t> turn_of_trial(std::uint64_t runs_so_far);
  static Key key_of(Place const& place);

  std::map<Key, AtPlace> places_;
  std::list<Key> recent_;  // most recent first
};

}  // namespace chorus::model
