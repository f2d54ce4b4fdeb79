// What finished runs teach about predictions: how much longer than predicted an algorithm took at a size in a group.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>

#include "collectives/model/select.hpp"

namespace chorus::model {

// A value without clock; not thread-safe. Remembers the last `places_max` pairs of a group's epoch, operation, size
// class (powers of four) and plan.
class LearnedCosts {
 public:
  static constexpr std::size_t places_max = 4096;
  // How much the newest run counts against all before it, once there were a few.
  static constexpr double newest_weight = 1.0 / 16;
  // Predictions within a factor of each other are equals as far as the model can tell.
  static constexpr double worth_a_trial = 1.5;
  // One run in so many is a trial: of the plan that ran least, of
  // - those that did not run twice yet and that the model, uncorrected, holds for equals of what it takes;
  // - those that are equals, corrected, and ran fewer than `trials` times, or so seldom that it may have been bad luck;
  // - those that are not yet told apart from the best: which may be better by `worth_knowing`, as their runs scatter.
  static constexpr std::uint64_t runs_per_trial = 4;
  static constexpr std::uint64_t trials = 4;
  static constexpr std::uint64_t runs_until_tried_again = 64;
  static constexpr double worth_knowing = 1.05;

  struct Place {
    std::string group;
    std::uint32_t epoch = 0;
    Op op = Op::all_reduce;
    std::uint64_t bytes = 0;
  };

  // A run of `spec` took so long; `predicted` is what the model said, uncorrected. Both positive. The first run of a
  // plan counts until there is a second.
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
    std::string plan;  // to_string(spec)
    auto operator<=>(Key const&) const = default;
  };
  struct Learned {
    double log_ratio = 0;  // of seconds / predicted: a mean, newer runs count more
    double variance = 0;   // of a run's logarithm about that mean
    std::uint64_t runs = 0;
    std::list<Key>::iterator position;
  };
  // Squared, of the mean of so many runs; a plan that did not run yet is known as badly as one that ran once.
  static double uncertainty(Learned const* learned);
  static Key key_of(Place const& place, plan::Spec const& spec);

  std::map<Key, Learned> learned_;
  std::list<Key> recent_;  // most recent first
};

}  // namespace chorus::model
