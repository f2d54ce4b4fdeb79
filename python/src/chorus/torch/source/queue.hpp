// Calls of a process group, one after the other in the order in which they were issued.
#pragma once

#include <ATen/core/ivalue.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>

namespace chorus::process_group {

class Queue;

// A call that was issued. Keeps the tensors alive that it uses, until it has ended.
class Call final : public c10d::Work {
 public:
  Call(std::weak_ptr<Queue> queue, int rank, c10d::OpType type, char const* title,
       std::vector<at::Tensor> const& inputs, std::vector<at::Tensor> outputs, std::function<void()> run)
      : Work(rank, type, title, inputs), queue_(std::move(queue)), outputs_(std::move(outputs)), run_(std::move(run)) {}

  // Runs the call, and then whatever waits for it. Once, by the queue.
  void run() noexcept {
    std::exception_ptr failure;
    try {
      run_();
    } catch (...) { failure = std::current_exception(); }
    run_ = nullptr;
    finish(failure);
    c10::intrusive_ptr<c10::ivalue::Future> future;
    {
      std::lock_guard const lock(announcing_);
      has_ended_ = true;
      future = future_;
    }
    if (future) announce(*future);
  }

  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;

  std::vector<at::Tensor> result() override { return outputs_; }

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    std::lock_guard const lock(announcing_);
    if (!future_) {
      future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
      if (has_ended_) announce(*future_);
    }
    return future_;
  }

 private:
  void announce(c10::ivalue::Future& future) {
    if (auto const failure = exception())
      future.setError(failure);
    else
      future.markCompleted(c10::IValue(outputs_));
  }

  std::weak_ptr<Queue> const queue_;
  std::vector<at::Tensor> const outputs_;
  std::function<void()> run_;
  std::mutex announcing_;
  bool has_ended_ = false;
  c10::intrusive_ptr<c10::ivalue::Future> future_;  // once somebody has asked for it
};

using Handle = c10::intrusive_ptr<Call>;

// All functions from any thread. Calls run in the queue's thread, or in one that waits for them, which saves small
// calls two changes of threads.
class Queue {
 public:
  Queue() : state_(std::make_shared<State>()), thread_([state = state_] { work(*state); }) {}
  // Waits for the end of all calls.
  ~Queue() {
    {
      std::lock_guard const lock(state_->mutex);
      state_->ends = true;
      state_->changed.notify_all();
    }
    // Whatever waits for a call may be what ends its queue, in the queue's own thread.
    if (thread_.get_id() == std::this_thread::get_id())
      thread_.detach();
    else
      thread_.join();
  }
  Queue(Queue const&) = delete;
  Queue& operator=(Queue const&) = delete;

  void submit(Handle call) {
    std::lock_guard const lock(state_->mutex);
    state_->calls.push_back(std::move(call));
    state_->changed.notify_one();
  }

  // Waits for the end of the calls that were issued.
  void drain() {
    std::unique_lock lock(state_->mutex);
    ++state_->drainers;
    while (state_->is_busy || !state_->calls.empty()) {
      if (state_->is_busy)
        state_->changed.wait(lock);
      else
        run_first(*state_, lock);
    }
    --state_->drainers;
  }

  // Runs calls until `call` has ended or another thread runs one.
  void help(Call& call) {
    std::unique_lock lock(state_->mutex);
    while (!call.isCompleted() && !state_->is_busy && !state_->calls.empty()) run_first(*state_, lock);
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Handle> calls;
    bool is_busy = false;  // a call runs
    bool ends = false;
    int drainers = 0;  // threads that wait until no call is left
  };

  static void run_first(State& state, std::unique_lock<std::mutex>& lock) {
    auto const call = std::move(state.calls.front());
    state.calls.pop_front();
    state.is_busy = true;
    lock.unlock();
    call->run();
    lock.lock();
    state.is_busy = false;
    if (!state.calls.empty() || state.ends || state.drainers > 0) state.changed.notify_all();
  }

  static void work(State& state) {
    std::unique_lock lock(state.mutex);
    for (;;) {
      state.changed.wait(lock, [&] { return !state.is_busy && (state.ends || !state.calls.empty()); });
      if (state.calls.empty()) return;
      run_first(state, lock);
    }
  }

  std::shared_ptr<State> const state_;
  std::thread thread_;
};

inline bool Call::wait(std::chrono::milliseconds timeout) {
  if (timeout == kNoTimeout)
    if (auto const queue = queue_.lock()) queue->help(*this);
  return Work::wait(timeout);
}

}  // namespace chorus::process_group
