// Several ways to do the same, measured in turns: a few iterations of each, over and over, so that whatever else the
// machine does hits all of them alike.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collectives/core/result.hpp"

namespace chorus::bench {

struct Sample {
  std::vector<double> seconds;  // per iteration, the slowest rank's
  double cpu_seconds = 0;       // of all ranks, in all iterations
  bool correct = true;
  std::string link;  // what the ranks used: "shm", "tcp" or "tls"
};

struct Pace {
  double turn_seconds = 0.01;  // about, at least one iteration
  double seconds = 1;          // about, per contender, and at least turns_min turns
  std::uint64_t turns_min = 1;
  std::uint64_t iterations_max = 10000;  // per contender
  std::uint64_t warmup = 5;              // iterations that do not count, fewer of those that take long
  bool only_the_best = false;            // a contender that has shown to be slower than another gets no more turns
};

// Iterations of one contender.
using Iterate = std::function<Result<Sample>(std::size_t contender, std::uint64_t iterations)>;

// What every contender did. Errors: the first of `iterate`.
[[nodiscard]] Result<std::vector<Sample>> contest(std::size_t contenders, Pace const& pace, Iterate const& iterate);

// The nearest-rank percentile, 0 < fraction <= 1; values are not empty.
[[nodiscard]] double percentile(std::vector<double> values, double fraction);
[[nodiscard]] inline double median(std::vector<double> values) { return percentile(std::move(values), 0.5); }

// Whether a contender may be left behind, after so many turns of which a quarter of the iterations took no longer than
// this: its fast ones, as its turns may have been those in which the machine did something else.
[[nodiscard]] bool is_hopeless(double quartile_s, double best_median_s, std::uint64_t turns);

}  // namespace chorus::bench
