// Decides which thread runs the loop of a data plane: the data thread, or a caller that waits for its run and so saves
// two thread switches.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

namespace chorus::engine {

// One holder at a time. When a caller has given the loop back, the data thread leaves it alone for one to two times
// `rest`, so that the next call of a training loop can take it without a thread switch. What arrives meanwhile waits in
// sockets and queues, unless nudge() is called.
class LoopBaton {
 public:
  static constexpr std::chrono::microseconds rest{1000}, long_rest{50000};

  // interrupt: makes the data thread return from any wait inside the loop; called from any thread.
  explicit LoopBaton(std::function<void()> interrupt) : interrupt_(std::move(interrupt)) {}

  // Data thread: waits until it holds the loop.
  void take();
  // Data thread, while it holds the loop: a caller waits, so call give().
  [[nodiscard]] bool is_wanted() const { return waiting_.load(std::memory_order_acquire) != 0; }
  void give();

  // Caller: takes the loop, without a lock unless the data thread holds it. False if another caller holds it, which
  // then serves this caller's run too.
  [[nodiscard]] bool borrow() {
    if (!change_holder(Holder::nobody, Holder::caller) && !wait_and_borrow()) return false;
    borrowed_.store(borrowed_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return true;
  }
  // work_left: the data thread takes over at once. held: about how long the caller held the loop.
  void give_back(bool work_left, std::chrono::nanoseconds held) {
    // After a long call the data thread is in its long rest.
    if (work_left || held > rest) nudged_ = true;
    holder_.store(Holder::nobody);
    // Either this sees a nudge that came while the caller held the loop, or the nudge sees that the loop is free.
    if (nudged_.load()) wake_data_thread();
  }

  // Any thread: there is work that no caller waits for.
  void nudge();

 private:
  enum class Holder : std::uint8_t { nobody, data_thread, caller };

  [[nodiscard]] bool change_holder(Holder from, Holder to) {
    return holder_.compare_exchange_strong(from, to, std::memory_order_acq_rel, std::memory_order_relaxed);
  }
  [[nodiscard]] bool wait_and_borrow();
  void wake_data_thread();

  std::function<void()> const interrupt_;
  // Callers change the holder without the lock. The data thread gives the loop up, and is waited for, with it.
  std::atomic<Holder> holder_{Holder::nobody};
  std::atomic<std::uint64_t> borrowed_{0};  // count; written by the caller that holds the loop
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<unsigned> waiting_{0};  // callers; changed with the lock
  std::atomic<bool> nudged_{false};
};

}  // namespace chorus::engine
