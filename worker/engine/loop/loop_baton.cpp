#include "worker/engine/loop/loop_baton.hpp"

namespace chorus::engine {

void LoopBaton::take() {
  std::unique_lock lock(mutex_);
  auto const is_free = [this] { return holder_.load() == Holder::nobody && waiting_ == 0; };
  // Callers wake no thread when they give the loop back, so this thread checks after every rest.
  auto rested = std::uint64_t{0};
  auto const may_take = [&] { return is_free() && (borrowed_.load(std::memory_order_relaxed) == rested || nudged_); };
  while (!may_take() || !change_holder(Holder::nobody, Holder::data_thread)) {
    rested = borrowed_.load(std::memory_order_relaxed);
    bool const is_borrowed = holder_ == Holder::caller;
    changed_.wait_for(lock, is_borrowed ? long_rest : rest, [&] { return is_free() && nudged_; });
  }
  nudged_ = false;
}

void LoopBaton::give() {
  {
    std::lock_guard const lock(mutex_);
    holder_ = Holder::nobody;
  }
  changed_.notify_all();
}

bool LoopBaton::wait_and_borrow() {
  std::unique_lock lock(mutex_);
  if (holder_ == Holder::data_thread) {
    ++waiting_;
    interrupt_();
    changed_.wait(lock, [this] { return holder_ != Holder::data_thread; });
    --waiting_;
  }
  return change_holder(Holder::nobody, Holder::caller);
}

void LoopBaton::wake_data_thread() {
  { std::lock_guard const lock(mutex_); }  // it waits, or has yet to look
  changed_.notify_all();
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
