// Calls of a process group, one after the other in the order in which they were issued.
#pragma once

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <system_error>
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

  // Runs the call. Once, by the queue, which calls announce() next if this returns true.
  [[nodiscard]] bool run() noexcept {
    std::exception_ptr failure;
    try {
      run_();
    } catch (...) { failure = std::current_exception(); }
    run_ = nullptr;
    finish(failure);
    std::lock_guard const lock(announcing_);
    has_ended_ = true;
    return future_ != nullptr;
  }

  // Completes the future, and with it runs the callbacks.
  void announce() noexcept { complete(*future_); }

  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;

  std::vector<at::Tensor> result() override { return outputs_; }

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  void complete(c10::ivalue::Future& future) {
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

// All functions from any thread. Calls run in the queue's threads, one at a time, or in a thread that waits for them,
// which saves small calls two changes of threads.
//
// Callbacks run in the thread in which their call ended, and may issue calls and wait for them: those run next, before
// all that were issued elsewhere and have not begun. The order of calls is then that of a program which runs its
// callbacks where it has added them, on every rank, however fast it is. So calls that were issued elsewhere wait until
// the callbacks have ended; or until one of them waits for such a call; or as long as the queue has patience.
class Queue {
 public:
  explicit Queue(std::chrono::milliseconds patience) : state_(std::make_shared<State>()) {
    state_->patience = patience;
    std::lock_guard const lock(state_->mutex);
    start_thread(state_);
  }
  // Waits for the end of all calls.
  ~Queue() {
    drain();
    std::vector<std::thread> threads;
    {
      std::lock_guard const lock(state_->mutex);
      state_->ends = true;
      state_->changed.notify_all();
      threads.swap(state_->threads);
    }
    for (auto& thread : threads)
      // A callback may be what ends its queue, in the queue's own thread.
      if (thread.get_id() == std::this_thread::get_id())
        thread.detach();
      else
        thread.join();
  }
  Queue(Queue const&) = delete;
  Queue& operator=(Queue const&) = delete;

  void submit(Handle call) {
    std::lock_guard const lock(state_->mutex);
    auto& levels = state_->levels;
    auto const level = std::find_if(levels.rbegin(), std::prev(levels.rend()), is_own);
    level->calls.push_back(std::move(call));
    if (levels.size() == 1)
      state_->changed.notify_one();
    else
      state_->changed.notify_all();
  }

  // Waits for the end of the calls that were issued, and of their callbacks, except those in which it is called.
  void drain() {
    std::unique_lock lock(state_->mutex);
    let_go(*state_, [](auto) { return true; });
    ++state_->drainers;
    while (state_->is_busy || state_->has_calls() || state_->others_announce()) {
      if (state_->can_run())
        run_first(state_, lock, false);
      else
        state_->changed.wait(lock);
    }
    --state_->drainers;
  }

  // Runs calls until `call` has ended or another thread has to run one.
  void help(Call& call) {
    std::unique_lock lock(state_->mutex);
    while (!call.isCompleted() && state_->can_run()) run_first(state_, lock, false);
  }

  // Somebody is going to wait for `call`: a callback, perhaps, that keeps it from running.
  void expect(Call const& call) {
    std::lock_guard const lock(state_->mutex);
    let_go(*state_, [&](auto level) {
      return std::any_of(state_->levels.begin(), level, [&](Level const& below) {
        return std::any_of(below.calls.begin(), below.calls.end(), [&](auto const& one) { return one.get() == &call; });
      });
    });
  }

 private:
  // Calls that were issued by the callbacks of one call, or elsewhere.
  struct Level {
    Call const* of = nullptr;
    std::thread::id thread;  // in which the callbacks run
    std::chrono::steady_clock::time_point until;
    std::deque<Handle> calls;
  };
  using Place = std::list<Level>::iterator;

  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::chrono::milliseconds patience{};
    std::list<Level> levels{1};  // calls run from the last; the first is of those that were issued elsewhere
    bool is_busy = false;        // a call runs
    bool ends = false;
    int drainers = 0;  // threads that wait until no call is left
    std::vector<std::thread> threads;
    int free = 0;  // threads that run no callbacks
    std::vector<std::thread::id> announcing;

    [[nodiscard]] bool can_run() const { return !is_busy && !levels.back().calls.empty(); }
    [[nodiscard]] bool has_calls() const {
      return std::any_of(levels.begin(), levels.end(), [](Level const& level) { return !level.calls.empty(); });
    }
    [[nodiscard]] bool others_announce() const {
      auto const own = std::this_thread::get_id();
      return std::any_of(announcing.begin(), announcing.end(), [&](auto thread) { return thread != own; });
    }
  };
  using StatePtr = std::shared_ptr<State>;

  static bool is_own(Level const& level) { return level.thread == std::this_thread::get_id(); }

  // Calls below a level wait for it no more.
  static void drop(State& state, Place level) {
    auto& below = std::prev(level)->calls;
    std::move(level->calls.rbegin(), level->calls.rend(), std::front_inserter(below));
    state.levels.erase(level);
    state.changed.notify_all();
  }

  // Drops those levels of the callbacks in which it is called of which `condition` holds.
  template <class Condition>
  static void let_go(State& state, Condition condition) {
    for (auto next = std::next(state.levels.begin()); next != state.levels.end();) {
      auto const level = next++;
      if (is_own(*level) && condition(level)) drop(state, level);
    }
  }

  // `is_queues`: the calling thread is one of the queue's, and runs no callbacks.
  static void run_first(StatePtr const& state, std::unique_lock<std::mutex>& lock, bool is_queues) {
    auto& calls = state->levels.back().calls;
    auto call = std::move(calls.front());
    calls.pop_front();
    state->is_busy = true;
    lock.unlock();
    bool const has_future = call->run();
    if (!has_future) call.reset();
    lock.lock();
    state->is_busy = false;
    if (has_future) announce(state, lock, std::move(call), is_queues);
    if (state->has_calls() || state->drainers > 0) state->changed.notify_all();
  }

  static void announce(StatePtr const& state, std::unique_lock<std::mutex>& lock, Handle call, bool is_queues) {
    auto const own = std::this_thread::get_id();
    auto const* const of = call.get();
    state->levels.push_back({of, own, std::chrono::steady_clock::now() + state->patience, {}});
    state->announcing.push_back(own);
    if (is_queues && --state->free == 0) start_thread(state);
    state->changed.notify_all();
    lock.unlock();
    call->announce();
    call.reset();
    lock.lock();
    if (is_queues) ++state->free;
    state->announcing.erase(std::find(state->announcing.begin(), state->announcing.end(), own));
    auto const level =
        std::find_if(state->levels.begin(), state->levels.end(), [&](auto& one) { return one.of == of; });
    if (level != state->levels.end()) drop(*state, level);
  }

  // With the mutex locked. Without a further thread callbacks can wait for no calls but by wait().
  static void start_thread(StatePtr const& state) {
    try {
      state->threads.emplace_back([state] { work(state); });
      ++state->free;
    } catch (std::system_error const&) {
      if (state->threads.empty()) throw;
    }
  }

  static void work(StatePtr const& state) {
    std::unique_lock lock(state->mutex);
    while (!state->ends) {
      auto& levels = state->levels;
      if (state->can_run()) {
        run_first(state, lock, true);
      } else if (state->is_busy || levels.size() == 1) {
        state->changed.wait(lock);
      } else if (auto const until = levels.back().until; std::chrono::steady_clock::now() < until) {
        state->changed.wait_until(lock, until);
      } else {
        drop(*state, std::prev(levels.end()));
      }
    }
  }

  StatePtr const state_;
};

inline bool Call::wait(std::chrono::milliseconds timeout) {
  if (auto const queue = isCompleted() ? nullptr : queue_.lock()) {
    queue->expect(*this);
    if (timeout == kNoTimeout) queue->help(*this);
  }
  return Work::wait(timeout);
}

inline c10::intrusive_ptr<c10::ivalue::Future> Call::getFuture() {
  if (auto const queue = isCompleted() ? nullptr : queue_.lock()) queue->expect(*this);
  std::lock_guard const lock(announcing_);
  if (!future_) {
    future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    if (has_ended_) complete(*future_);
  }
  return future_;
}

}  // namespace chorus::process_group
