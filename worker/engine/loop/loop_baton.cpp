#include "worker/engine/loop/loop_baton.hpp"

namespace chorus::engine {

void LoopBaton::take() {
  std::unique_lock lock(mutex_);
  // Callers wake no thread when they give the loop back, so this thread checks after every rest.
  for (auto rested = std::uint64_t{0}; !is_free() || (borrowed_ != rested && !nudged_);) {
    rested = borrowed_;
    bool const is_borrowed = holder_ == Holder::caller;
    changed_.wait_for(lock, is_borrowed ? long_rest : rest, [this] { return is_free() && nudged_; });
  }
  nudged_ = false;
  holder_ = Holder::data_thread;
}

void LoopBaton::give() {
  {
    std::lock_guard const lock(mutex_);
    holder_ = Holder::nobody;
  }
  changed_.notify_all();
}

bool LoopBaton::borrow() {
  std::unique_lock lock(mutex_);
  if (holder_ == Holder::data_thread) {
    ++waiting_;
    interrupt_();
    changed_.wait(lock, [this] { return holder_ != Holder::data_thread; });
    --waiting_;
  }
  if (holder_ == Holder::caller) return false;
  holder_ = Holder::caller;
  ++borrowed_;
  return true;
}

void LoopBaton::give_back(bool work_left, std::chrono::nanoseconds held) {
  bool goes_on = false;
  {
    std::lock_guard const lock(mutex_);
    holder_ = Holder::nobody;
    // After a long call the data thread is in its long rest.
    goes_on = nudged_ = nudged_ || work_left || held > rest;
  }
  if (goes_on) changed_.notify_all();
}

void LoopBaton::nudge() {
  {
    std::lock_guard const lock(mutex_);
    // A caller that waits for the data thread may take the loop and give it back without having polled.
    if (holder_ == Holder::data_thread && waiting_ == 0) return;
    nudged_ = true;
  }
  changed_.notify_all();
}

}  // namespace chorus::engine
