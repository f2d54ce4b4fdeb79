// Calls run one after the other, in the order in which they were issued.
#pragma once

#include <atomic>
#include <cstdint>

namespace chorus::embedded {

// Thread-safe. Where nobody waits a turn costs two atomic additions; who waits sleeps.
class Turns {
 public:
  using Ticket = std::uint32_t;  // what the kernel waits for; there are never so many calls at once

  [[nodiscard]] Ticket draw() { return next_.fetch_add(1, std::memory_order_relaxed); }
  void wait_for(Ticket ticket) {
    for (;;) {
      auto const now = serving_.load(std::memory_order_acquire);
      if (now == ticket) return;
      serving_.wait(now, std::memory_order_acquire);
    }
  }
  void end() {
    serving_.fetch_add(1);  // in one order with who begins to wait
    serving_.notify_all();
  }

 private:
  std::atomic<Ticket> next_{0}, serving_{0};
};

// One turn, from when it has come to the end of the block.
class Turn {
 public:
  explicit Turn(Turns& turns) : Turn(turns, turns.draw()) {}
  Turn(Turns& turns, Turns::Ticket ticket) : turns_(turns) { turns_.wait_for(ticket); }
  ~Turn() { turns_.end(); }
  Turn(Turn const&) = delete;
  Turn& operator=(Turn const&) = delete;

 private:
  Turns& turns_;
};

}  // namespace chorus::embedded
