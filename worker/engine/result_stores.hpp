// Whether a step over shared memory writes its results through the caches or past them, where that depends on where the
// cores are.
#pragma once

#include <cstdint>

namespace chorus::engine {

// Results that go into others' memory take half as long through the caches as past them while all cores have one
// last-level cache, and up to six times as long between two, where each line has to be fetched from the core that had
// it last. Nobody says which it is, and the host of a virtual machine changes it as it goes; so one of many steps does
// a part each way, and what is clearly faster twice in a row is how the next ones go. Only speed depends on it. Of one
// kind of call on one rank; not thread-safe.
class ResultStores {
 public:
  // Of a step that tries, this part goes the other way.
  static constexpr std::uint64_t trial_part = 8;

  // How the next step goes, or the larger part of one that tries.
  [[nodiscard]] bool stream() const { return stream_; }

  // Whether the next step is one of those that try. Counts it.
  [[nodiscard]] bool tries() {
    auto const step = steps_++;
    return step % steps_per_trial == 0 || (step > 0 && step <= first_trials);
  }

  // What a step that tried took, in any unit.
  void compare(double usual_per_byte, double other_per_byte) {
    wins_of_other_ = other_per_byte < (stream_ ? to_return : to_stream) * usual_per_byte ? wins_of_other_ + 1 : 0;
    if (wins_of_other_ < wins_needed) return;
    stream_ = !stream_;
    wins_of_other_ = 0;
  }

 private:
  // One step in so many pays for an eighth of it, up to six times: four percent at the worst.
  static constexpr std::uint64_t steps_per_trial = 16;
  static constexpr std::uint64_t first_trials = 4;
  // Parts of the time of the way at hand. What a rank writes past the caches is in none of them, which makes the other
  // way slower for its peers: ranks that each did what is a little faster for them did different things, and all were
  // slower. So the caches are left for what is far better only.
  static constexpr double to_stream = 0.5;
  static constexpr double to_return = 1.3;
  static constexpr int wins_needed = 2;

  std::uint64_t steps_ = 0;
  int wins_of_other_ = 0;
  bool stream_ = false;
};

}  // namespace chorus::engine
