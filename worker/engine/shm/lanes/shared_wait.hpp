// How a caller waits for its peers over shared memory: first spinning, then yielding, then asleep until a peer rings.
#pragma once

#include <chrono>
#include <cstdint>

#include "worker/memory/regions/shared_region.hpp"

namespace chorus::engine {

// One wait after the other, on one thread. The region of `head` outlives the object.
class SharedWait {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // `shares_cores`: there are more callers than processors, so a caller that spins keeps another one from running.
  SharedWait(memory::RegionHead& head, bool shares_cores) : head_(head), spins_(shares_cores ? 0 : spins_alone) {}
  ~SharedWait() { stand_up(); }
  SharedWait(SharedWait const&) = delete;
  SharedWait& operator=(SharedWait const&) = delete;

  // What the caller does between two pauses: read one word that a peer writes, or check everything that it waits for.
  enum class Look : std::uint32_t { at_one_word = 1, at_all = 4 };

  // Something moved: the next wait starts anew. True from time to time, like pause(), because a peer that moves a
  // little between any two looks would never be waited for long enough.
  [[nodiscard]] bool moved() {
    if (idle_ != 0) stand_up();
    idle_ = 0;
    return ++moves_ % looks_every == 0;
  }
  // Waits a moment. True from time to time, when clocks and the state of the peers should be checked.
  [[nodiscard]] bool pause(Look look);

  // Duration of a yield. A long one shows that another thread computes on this core. That thread keeps the core for a
  // slice of some milliseconds after each yield, while a sleeper gets it back when it is rung: from then on the caller
  // sleeps instead.
  void was_away(std::chrono::nanoseconds yield);

 private:
  // Counted in reads of one word, about 30 ns each with the pause.
  static constexpr std::uint32_t spins_alone = 16000;
  static constexpr std::uint32_t burst = 256;
  static constexpr std::uint32_t yields = 1600;
  static constexpr std::uint32_t looks_every = 1024;
  static constexpr std::chrono::milliseconds crowded_from{1};

  void give_way();
  void stand_up();

  memory::RegionHead& head_;
  std::uint32_t const spins_;
  std::uint32_t idle_ = 0;
  std::uint32_t moves_ = 0;
  bool is_crowded_ = false;  // another thread computes on this core
  bool is_lying_ = false;    // counted as a sleeper
  std::uint32_t bell_ = 0;
};

}  // namespace chorus::engine
