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

#include "interpreter.hpp"

namespace chorus::process_group {

class Queue;

using Future = c10::intrusive_ptr<c10::ivalue::Future>;

// A call that was issued. Keeps the tensors alive that it uses, until it has ended.
class Call final : public c10d::Work {
 public:
  Call(std::weak_ptr<Queue> queue, int rank, c10d::OpType type, char const* title,
       std::vector<at::Tensor> const& inputs, std::vector<at::Tensor> outputs, std::function<void()> run)
      : Work(rank, type, title, inputs), queue_(std::move(queue)), outputs_(std::move(outputs)), run_(std::move(run)) {}

  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;

  std::vector<at::Tensor> result() override { return outputs_; }

  // Returns a future whose callbacks have their place in the order of calls here: see Queue.
  Future getFuture() override;

 private:
  friend Queue;

  // Runs the call. Once, by the queue.
  void run() noexcept {
    std::exception_ptr failure;
    try {
      run_();
    } catch (...) { failure = std::current_exception(); }
    run_ = nullptr;
    finish(failure);
  }

  // Completes the future, and with it runs the callbacks.
  void complete(c10::ivalue::Future& future) noexcept {
    if (auto const failure = exception())
      future.setError(failure);
    else
      future.markCompleted(c10::IValue(outputs_));
  }

  std::weak_ptr<Queue> const queue_;
  std::vector<at::Tensor> const outputs_;
  std::function<void()> run_;
  // Under the queue's mutex:
  bool has_futures_ = false;
  bool has_ended_ = false;
};

using Handle = c10::intrusive_ptr<Call>;

// All functions from any thread. Calls run in the queue's threads, one at a time, or in a thread that waits for them,
// which saves small calls two changes of threads.
//
// Callbacks may issue calls and wait for them. They run in one of the queue's threads, or, if the call has ended, in
// the thread that adds them. Where they run depends on time; the order of calls must not, as ranks would sum different
// things. So futures have places among the calls:
//
// - A call is behind all calls that were issued, and all futures that were returned, until then.
// - The place of a future is that of the getFuture() that returned it.
// - What a callback issues, and the futures it asks for, are directly before the place of its future.
//
// That is the order of a program in which each getFuture() runs the callbacks that are added to what it returns. A
// callback has to be added before the program issues another call: later, it has the place of its future if the call
// has not ended, and that of a call issued just then if it has. The queue does not see callbacks being added, and
// cannot tell.
//
// A place is passed when the callbacks have ended; when one of them waits for a call behind it; or when the patience of
// the queue has. What a callback issues after the latter two is behind all that was issued.
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
    state_->order.insert(next_place(*state_), Place{std::move(call)});
    if (state_->can_run()) state_->changed.notify_one();
  }

  // Waits for the end of the calls that were issued, and of their callbacks, except those in which it is called.
  void drain() {
    std::unique_lock lock(state_->mutex);
    pass(*state_, state_->order.end());
    ++state_->drainers;
    while (state_->is_busy || !state_->order.empty() || state_->others_announce()) {
      if (state_->can_run())
        run_first(*state_, lock);
      else
        state_->changed.wait(lock);
    }
    --state_->drainers;
  }

  // Runs calls until `call` has ended or another thread has to run one.
  void help(Call& call) {
    std::unique_lock lock(state_->mutex);
    while (!call.isCompleted() && state_->can_run()) run_first(*state_, lock);
  }

  // Somebody is going to wait for `call`: a callback, perhaps, that keeps it from running.
  void expect(Call const& call) {
    std::lock_guard const lock(state_->mutex);
    pass_before(*state_, call);
  }

  Future future_of(Call& call) {
    auto const future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    {
      std::lock_guard const lock(state_->mutex);
      if (!call.has_ended_) {
        pass_before(*state_, call);
        auto const next = next_place(*state_);
        if (next != state_->order.begin() && std::prev(next)->of == &call) return std::prev(next)->future;
        state_->order.insert(next, Place{{}, &call, future});
        call.has_futures_ = true;
        return future;
      }
    }
    call.complete(*future);
    return future;
  }

 private:
  // A call that has not begun, or a future whose callbacks have not ended.
  struct Place {
    Handle call;                                    // null: the place of a future
    Call const* of = nullptr;                       // the future's
    Future future{};                                // another handle lives elsewhere when the place is passed
    std::thread::id thread{};                       // in which the callbacks run
    std::chrono::steady_clock::time_point until{};  // once the call has ended
  };
  using Order = std::list<Place>;

  // A call that has ended, and its futures in the order of their places.
  struct Ended {
    Handle call;
    std::vector<Future> futures;
  };

  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::chrono::milliseconds patience{};
    Order order;
    std::deque<Ended> ended;  // whose futures no thread completes yet
    bool is_busy = false;     // a call runs
    bool ends = false;
    int drainers = 0;  // threads that wait until no call is left
    std::vector<std::thread> threads;
    int free = 0;  // threads that run no callbacks
    std::vector<std::thread::id> announcing;

    [[nodiscard]] bool can_run() const { return !is_busy && !order.empty() && order.front().call; }
    [[nodiscard]] bool others_announce() const {
      auto const own = std::this_thread::get_id();
      return !ended.empty() ||
             std::any_of(announcing.begin(), announcing.end(), [&](auto thread) { return thread != own; });
    }
    [[nodiscard]] Order::iterator place_of(Future const& future) {
      return std::find_if(order.begin(), order.end(), [&](Place const& one) { return one.future == future; });
    }
  };
  using StatePtr = std::shared_ptr<State>;

  // The place before which the calling thread issues: that of the future whose callbacks it runs, or the end.
  static Order::iterator next_place(State& state) {
    if (state.announcing.empty()) return state.order.end();
    auto const own = std::this_thread::get_id();
    return std::find_if(state.order.begin(), state.order.end(), [&](Place const& one) { return one.thread == own; });
  }

  // Passes the places of the callbacks in which it is called, as far as `end`.
  static void pass(State& state, Order::const_iterator end) {
    auto const own = std::this_thread::get_id();
    for (auto next = state.order.begin(); next != end;)
      next = next->thread == own ? state.order.erase(next) : std::next(next);
    state.changed.notify_all();
  }
  static void pass_before(State& state, Call const& call) {
    if (state.announcing.empty()) return;
    auto const& order = state.order;
    auto const at = std::find_if(order.begin(), order.end(), [&](Place const& one) { return one.call.get() == &call; });
    if (at != order.end()) pass(state, at);
  }

  static void run_first(State& state, std::unique_lock<std::mutex>& lock) {
    Ended one{std::move(state.order.front().call), {}};
    state.order.pop_front();
    state.is_busy = true;
    lock.unlock();
    one.call->run();
    lock.lock();
    one.call->has_ended_ = true;
    if (one.call->has_futures_) {
      for (auto& place : state.order) {
        if (place.of != one.call.get()) continue;
        place.until = std::chrono::steady_clock::now() + state.patience;
        one.futures.push_back(place.future);
      }
      state.ended.push_back(std::move(one));
    } else {
      lock.unlock();
      one.call.reset();
      lock.lock();
    }
    state.is_busy = false;
    if (!state.order.empty() || !state.ended.empty() || state.drainers > 0) state.changed.notify_all();
  }

  // By a thread of the queue that runs no callbacks, so that no callback runs within another one's.
  static void announce_first(StatePtr const& state, std::unique_lock<std::mutex>& lock) {
    auto const own = std::this_thread::get_id();
    auto one = std::move(state->ended.front());
    state->ended.pop_front();
    state->announcing.push_back(own);
    for (auto& place : state->order)
      if (place.of == one.call.get()) place.thread = own;
    if (--state->free == 0) start_thread(state);
    state->changed.notify_all();
    for (auto const& future : one.futures) {
      if (auto const at = state->place_of(future); at != state->order.end())
        at->until = std::chrono::steady_clock::now() + state->patience;
      lock.unlock();
      one.call->complete(*future);
      lock.lock();
      if (auto const at = state->place_of(future); at != state->order.end()) state->order.erase(at);
      state->changed.notify_all();
    }
    lock.unlock();
    one = {};
    lock.lock();
    ++state->free;
    state->announcing.erase(std::find(state->announcing.begin(), state->announcing.end(), own));
    state->changed.notify_all();
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
      auto& order = state->order;
      if (!state->ended.empty()) {
        announce_first(state, lock);
      } else if (state->can_run()) {
        run_first(*state, lock);
      } else if (state->is_busy || order.empty()) {
        state->changed.wait(lock);
      } else if (auto const until = order.front().until; std::chrono::steady_clock::now() < until) {
        state->changed.wait_until(lock, until);
      } else {
        order.pop_front();
        state->changed.notify_all();
      }
    }
  }

  StatePtr const state_;
};

inline bool Call::wait(std::chrono::milliseconds timeout) {
  InterpreterEnd const end;
  if (auto const queue = isCompleted() ? nullptr : queue_.lock()) {
    queue->expect(*this);
    if (timeout == kNoTimeout) queue->help(*this);
  }
  return Work::wait(timeout);
}

inline Future Call::getFuture() {
  if (auto const queue = queue_.lock()) return queue->future_of(*this);
  auto future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
  complete(*future);  // queues wait for their calls before they end
  return future;
}

}  // namespace chorus::process_group
