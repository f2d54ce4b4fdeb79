// Measures several ways to do the same in turns: a few iterations of each, over and over, so that disturbances affect
// all of them alike.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collectives/core/result.hpp"

namespace chorus::bench {

struct Sample {
  std::vector<double> seconds;  // per iteration, of the slowest rank
  double cpu_seconds = 0;       // of all ranks, in all iterations
  bool correct = true;
  std::string link;  // kind of link that the ranks used: "shm", "tcp" or "tls"
};

struct Pace {
  double turn_seconds = 0.01;  // about; at least one iteration
  double seconds = 1;          // about, per contender; at least turns_min turns
  std::uint64_t turns_min = 1;
  std::uint64_t iterations_max = 10000;  // per contender
  std::uint64_t warmup = 5;              // iterations that do not count; fewer if they take long
  bool only_the_best = false;            // a contender that is clearly slower than another gets no more turns
};

// Iterations of one contender.
using Iterate = std::function<Result<Sample>(std::size_t contender, std::uint64_t iterations)>;

// The sample of every contender. Errors: the first of `iterate`.
[[nodiscard]] Result<std::vector<Sample>> contest(std::size_t contenders, Pace const& pace, Iterate const& iterate);

// The nearest-rank percentile, 0 < fraction <= 1; values are not empty.
[[nodiscard]] double percentile(std::vector<double> values, double fraction);
[[nodiscard]] inline double median(std::vector<double> values) { return percentile(std::move(values), 0.5); }

// True if a contender may be given up after this many turns, of whose iterations a quarter took no longer than
// `quartile_s`: the fast ones are compared, because its turns may have been disturbed.
[[nodiscard]] bool is_hopeless(double quartile_s, double best_median_s, std::uint64_t turns);

}  // namespace chorus::bench
