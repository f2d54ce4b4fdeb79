// The rounds of a polling thread: which of them look further than shared memory and a few sockets, and which read the
// clock.
#pragma once

#include <atomic>
#include <bit>

namespace chorus::engine {

// One thread at a time, except where noted. Rounds are counted across calls: a short call asks the system only for what
// it waits for.
class PollRounds {
 public:
  // Rounds for each that looks further: if none of the last `lately` has found anything there, or one has, or if they
  // look at memory only and so are shorter by far.
  static constexpr unsigned per_look = 64, per_look_lately = 16, lately = 4096, per_look_in_memory = 512;
  static_assert(std::has_single_bit(per_look) && std::has_single_bit(per_look_lately));
  static_assert(std::has_single_bit(per_look_in_memory));
  // Rounds in memory for each that reads the clock.
  static constexpr unsigned per_clock = 8;

  // Begins a round. `looks_at`: what it looks at before it looks further.
  enum class LooksAt { nothing, memory, few_sockets };
  void begin(LooksAt looks_at) {
    ++round_;
    auto const is_lately = round_ - moved_ < lately;
    auto const every = is_lately ? per_look_lately : looks_at == LooksAt::few_sockets ? per_look : per_look_in_memory;
    looks_further_ = looks_at == LooksAt::nothing || (round_ & (every - 1)) == 0;
    if (is_asked_.load(std::memory_order_relaxed) && is_asked_.exchange(false, std::memory_order_acquire))
      looks_further_ = true;
    reads_clock_ = looks_further_ || looks_at != LooksAt::memory || round_ % per_clock == 0;
  }
  // Any thread: there is something for the look further, which the next round makes.
  void ask() { is_asked_.store(true, std::memory_order_release); }
  [[nodiscard]] unsigned number() const { return round_; }
  [[nodiscard]] bool looks_further() const { return looks_further_; }
  [[nodiscard]] bool reads_clock() const { return reads_clock_; }
  // The look further has found something.
  void further_moved() { moved_ = round_; }

 private:
  unsigned round_ = 0;
  unsigned moved_ = 0;  // round
  bool looks_further_ = false, reads_clock_ = false;
  std::atomic<bool> is_asked_{false};
};

}  // namespace chorus::engine
