// What finished runs teach about predictions: how much longer than predicted an algorithm took at a size in a group.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>

#include "collectives/model/select.hpp"

namespace chorus::model {

// A value without clock; not thread-safe. Remembers the last `places_max` places: a group's epoch, an operation and a
// size class (powers of four).
//
// A run right after one of another plan can take twice as long as those that follow it (connections, caches, threads
// that sleep), and the first run of all longer still. So plans are compared by runs that follow one of the same plan,
// *warm* ones; others count for a plan only until it has a warm one. And a machine with more ranks than cores is fast
// or slow for dozens of runs, whatever runs, by which ranks share a core (measured: four ranks on two, 1 KiB, every
// plan 48 us and then 100). So plans are tried several times in a row, and those runs are one observation, not several.
class LearnedCosts {
 public:
  static constexpr std::size_t places_max = 1024;
  // How much the newest run counts against all before it, once there were a few.
  static constexpr double newest_weight = 1.0 / 16;
  // Predictions within a factor of each other are equals as far as the model can tell.
  static constexpr double worth_a_trial = 1.5;
  // The last `runs_per_trial` runs of every round are a trial: of the plan that ran least, of
  // - those without a warm run, not often begun, that the model, uncorrected, holds for equals of what it takes;
  // - those that are equals, corrected, and ran fewer than `trials` times, or so seldom that it may have been bad luck;
  // - those that are not yet told apart from the best: which may be better by `worth_knowing`, as their runs scatter.
  // What is learned early pays longest: half of the first `early_runs` are trials where there is something to try, a
  // quarter of the others.
  static constexpr std::uint64_t runs_per_trial = 4;
  static constexpr std::uint64_t early_runs = 256;
  static constexpr std::uint64_t runs_per_round_early = 8;
  static constexpr std::uint64_t runs_per_round = 16;
  static constexpr std::uint64_t trials = 4;
  static constexpr std::uint64_t runs_until_tried_again = 64;
  static constexpr double worth_knowing = 1.05;
  // A trial whose last run was so much slower than the best is broken off.
  static constexpr double worth_going_on = 3;

  struct Place {
    std::string group;
    std::uint32_t epoch = 0;
    Op op = Op::all_reduce;
    std::uint64_t bytes = 0;
  };

  // A run of `spec` took so long; `predicted` is what the model said, uncorrected. Both positive.
  void finished(Place const& place, plan::Spec const& spec, double predicted_seconds, double seconds);

  // The choice with every prediction corrected: by what was seen of the same plan at this size, or, of plans that were
  // not seen yet, by the middle of what was seen of others, so that one slow machine does not make them all look
  // better. Sorted again; with auto the new first one is chosen, or one whose turn it is to be tried, and the reason
  // says so. Without anything seen the choice stays as it is.
  [[nodiscard]] Choice corrected(Place const& place, Choice choice, bool is_auto) const;

 private:
  struct Key {
    std::string group;
    std::uint32_t epoch;
    Op op;
    unsigned size_class;
    auto operator<=>(Key const&) const = default;
  };
  struct Learned {
    double log_ratio = 0;  // of seconds / predicted: a mean, newer runs count more
    double variance = 0;   // of a run's logarithm about that mean
    std::uint64_t runs = 0;
    bool is_warm = false;  // what was counted were warm runs
  };
  struct AtPlace {
    std::map<plan::Spec, Learned> plans;
    std::uint64_t runs = 0;  // all, also those that no longer count
    plan::Spec last;         // the plan of the newest
    std::list<Key>::iterator position;
  };
  // Squared, of the mean of so many runs; a plan that did not run yet is known as badly as one that ran once.
  static double uncertainty(Learned const* learned);
  static std::optional<std::uint64_t> turn_of_trial(std::uint64_t runs_so_far);
  static Key key_of(Place const& place);

  std::map<Key, AtPlace> places_;
  std::list<Key> recent_;  // most recent first
};

}  // namespace chorus::model
