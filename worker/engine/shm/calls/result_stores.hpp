// Decides whether a step over shared memory writes its results through the caches or past them, where the faster way
// depends on the placement of the cores.
#pragma once

#include <cstdint>

namespace chorus::engine {

// Writing results into other members' memory takes half as long through the caches as past them while all cores share
// one last-level cache, and up to six times as long between two of them, where each line is fetched from the core that
// last had it. The placement is unknown, and the host of a virtual machine may change it. So one step in many does one
// part each way, and a way that is clearly faster twice in a row is used from then on. This affects speed only. One per
// kind of call and rank; not thread-safe.
class ResultStores {
 public:
  // A trial step writes one part in this many the other way.
  static constexpr std::uint64_t trial_part = 8;

  // How the next step writes, or the larger part of a trial step.
  [[nodiscard]] bool stream() const { return stream_; }

  // True if the next step is a trial. Counts the step.
  [[nodiscard]] bool tries() {
    auto const step = steps_++;
    return step % steps_per_trial == 0 || (step > 0 && step <= first_trials);
  }

  // Times of the two ways in a trial step, in any unit.
  void compare(double usual_per_byte, double other_per_byte) {
    wins_of_other_ = other_per_byte < (stream_ ? to_return : to_stream) * usual_per_byte ? wins_of_other_ + 1 : 0;
    if (wins_of_other_ < wins_needed) return;
    stream_ = !stream_;
    wins_of_other_ = 0;
  }

 private:
  // A trial costs at most six times the time of an eighth of one step in 16: four percent at the worst.
  static constexpr std::uint64_t steps_per_trial = 16;
  static constexpr std::uint64_t first_trials = 4;
  // Fractions of the current way's time. A rank that writes past the caches makes the other way slower for its peers:
  // when each rank chose what was slightly faster for itself, ranks chose differently and all were slower. So the
  // caches are bypassed only for a large gain.
  static constexpr double to_stream = 0.5;
  static constexpr double to_return = 1.3;
  static constexpr int wins_needed = 2;

  std::uint64_t steps_ = 0;
  int wins_of_other_ = 0;
  bool stream_ = false;
};

}  // namespace chorus::engine
