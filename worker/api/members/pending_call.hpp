// What a handle waits for.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "collectives/core/result.hpp"
#include "worker/api/errc.hpp"

namespace chorus::embedded {

// What wakes a thread that waits for one of several calls. Thread-safe.
class AnyCallEnded {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  void notify() {
    std::lock_guard const lock(mutex_);
    has_ended_ = true;
    changed_.notify_all();
  }
  // Returns at the first notify(), or at the deadline.
  void wait_until(TimePoint deadline) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline, [this] { return has_ended_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool has_ended_ = false;
};

// Thread-safe.
class PendingCall {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  void end(Status status) {
    std::lock_guard const lock(mutex_);
    status_ = std::move(status);
    ended_.notify_all();
    for (auto* const watcher : watchers_) watcher->notify();
  }
  // How the call is taken back: returns true once the call has ended as cancelled. Without it the call cannot be.
  void let_cancel(std::function<bool()> cancel) {
    std::lock_guard const lock(mutex_);
    cancel_ = std::move(cancel);
  }
  // See Handle.
  [[nodiscard]] Status cancel() {
    std::unique_lock lock(mutex_);
    if (!status_ && cancel_ == nullptr)
      return Error(WorkerErrc::not_cancellable,
                   "only a receive can be cancelled: the other members wait for this one in this call");
    if (!status_) {
      auto const cancel = cancel_;  // takes time, and ends the call
      lock.unlock();
      if (cancel()) return ok();
      lock.lock();
    }
    if (status_ && status_->has_error() && status_->error().code == WorkerErrc::cancelled) return ok();
    return Error(WorkerErrc::not_cancellable,
                 status_ ? "the call has ended" : "the receive has met its message, which it is getting");
  }
  [[nodiscard]] bool is_done() const {
    std::lock_guard const lock(mutex_);
    return status_.has_value();
  }
  [[nodiscard]] Status wait() const {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return status_.has_value(); });
    return *status_;
  }
  [[nodiscard]] std::optional<Status> wait_until(TimePoint deadline) const {
    std::unique_lock lock(mutex_);
    ended_.wait_until(lock, deadline, [&] { return status_.has_value(); });
    return status_;
  }
  // Notifies `watcher` when the call ends, at once if it has ended, until unwatch() has returned.
  void watch(AnyCallEnded& watcher) {
    std::lock_guard const lock(mutex_);
    watchers_.push_back(&watcher);
    if (status_) watcher.notify();
  }
  void unwatch(AnyCallEnded& watcher) {
    std::lock_guard const lock(mutex_);
    watchers_.erase(std::remove(watchers_.begin(), watchers_.end(), &watcher), watchers_.end());
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable ended_;
  std::optional<Status> status_;
  std::function<bool()> cancel_;
  std::vector<AnyCallEnded*> watchers_;
};

// Watches a call for as long as this object lives.
class Watch {
 public:
  Watch(PendingCall& call, AnyCallEnded& watcher) : call_(call), watcher_(watcher) { call_.watch(watcher_); }
  ~Watch() { call_.unwatch(watcher_); }
  Watch(Watch const&) = delete;
  Watch& operator=(Watch const&) = delete;

 private:
  PendingCall& call_;
  AnyCallEnded& watcher_;
};

}  // namespace chorus::embedded
