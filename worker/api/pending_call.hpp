// What a handle waits for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "collectives/core/result.hpp"

namespace chorus::embedded {

// Thread-safe.
class PendingCall {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  void end(Status status) {
    std::lock_guard const lock(mutex_);
    status_ = std::move(status);
    ended_.notify_all();
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

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable ended_;
  std::optional<Status> status_;
};

}  // namespace chorus::embedded
