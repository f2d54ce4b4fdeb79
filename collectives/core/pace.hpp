// How long a group's operations take, and from that how long to wait for one to which nobody gave a time.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "collectives/core/op.hpp"

namespace chorus {

// A value without clock; not thread-safe. Sizes are told apart in powers of four: a barrier says nothing about a
// gigabyte.
class Pace {
 public:
  // Until `known_after` of an operation and size have ended, and the bounds after that.
  static constexpr double unknown_s = 30;
  static constexpr double least_s = 10;
  static constexpr double most_s = 600;
  static constexpr unsigned known_after = 3;
  // The slowest is what counts, since members arrive when their own work lets them, and it fades: what one did not do
  // for 700 calls counts half.
  static constexpr double times_the_slowest = 10;
  static constexpr double fading = 0.999;

  // One ended well; it took a member so long, waiting for the others included.
  void finished(Op op, std::uint64_t bytes, double seconds);

  // `predicted_s`: what is expected of one that has not been seen, 0: nothing is.
  [[nodiscard]] double patience_s(Op op, std::uint64_t bytes, double predicted_s = 0) const;

 private:
  struct Seen {
    unsigned times = 0;  // up to known_after
    double slowest_s = 0;
  };
  std::map<std::pair<Op, unsigned>, Seen> seen_;
};

}  // namespace chorus
