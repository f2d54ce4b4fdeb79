// Default timeouts of a group's operations, derived from the durations of earlier ones.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "collectives/core/op.hpp"

namespace chorus {

// A value without a clock; not thread-safe. Keeps the durations of each operation and size class apart: a barrier tells
// nothing about a gigabyte.
class Pace {
 public:
  static constexpr double unknown_s = 30;     // shortest timeout before `known_after` operations
  static constexpr double least_s = 10;       // shortest timeout after that
  static constexpr double most_s = 600;       // longest timeout
  static constexpr unsigned known_after = 3;  // operations of one size class that make its duration known
  // The slowest duration counts, since members arrive when their own work lets them.
  static constexpr double times_the_slowest = 10;
  // Factor of the slowest duration per operation: it halves in about 700 operations.
  static constexpr double fading = 0.999;
  // Adds an operation that has succeeded, with its duration on a member including all waits.
  void finished(Op op, std::uint64_t bytes, double seconds);

  // Returns the timeout of the next operation. `predicted_s`: the model's prediction for an unknown duration; 0: none.
  [[nodiscard]] double patience_s(Op op, std::uint64_t bytes, double predicted_s = 0) const;

 private:
  struct Seen {
    unsigned times = 0;  // up to known_after
    double slowest_s = 0;
  };
  std::map<std::pair<Op, unsigned>, Seen> seen_;
};

}  // namespace chorus
