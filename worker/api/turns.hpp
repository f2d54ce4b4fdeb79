// Calls run one after the other, in the order in which they were issued.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace chorus::embedded {

// Thread-safe. Costs two uncontended locks per call where nobody waits.
class Turns {
 public:
  [[nodiscard]] std::uint64_t draw() {
    std::lock_guard const lock(mutex_);
    return next_++;
  }
  void wait_for(std::uint64_t ticket) {
    std::unique_lock lock(mutex_);
    if (serving_ == ticket) return;
    ++waiting_;
    changed_.wait(lock, [&] { return serving_ == ticket; });
    --waiting_;
  }
  void end() {
    std::lock_guard const lock(mutex_);
    ++serving_;
    if (waiting_ != 0) changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_ = 0, serving_ = 0;
  std::uint32_t waiting_ = 0;
};

// One turn, from when it has come to the end of the block.
class Turn {
 public:
  explicit Turn(Turns& turns) : Turn(turns, turns.draw()) {}
  Turn(Turns& turns, std::uint64_t ticket) : turns_(turns) { turns_.wait_for(ticket); }
  ~Turn() { turns_.end(); }
  Turn(Turn const&) = delete;
  Turn& operator=(Turn const&) = delete;

 private:
  Turns& turns_;
};

}  // namespace chorus::embedded
