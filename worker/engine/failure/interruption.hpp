// A reason to end a call that is under way, set by another thread.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>

#include "worker/engine/failure/failure.hpp"

namespace chorus::engine {

// Thread-safe. The first reason is kept.
class Interruption {
 public:
  void interrupt(EngineErrc code, std::string why) {
    std::lock_guard const lock(mutex_);
    if (failure_) return;
    failure_ = Failure{code, std::move(why), {}, {}};
    is_set_.store(true);  // before the caller looks at anything else
  }
  [[nodiscard]] bool is_set() const { return is_set_.load(); }
  // Cheap while no reason is set.
  [[nodiscard]] std::optional<Failure> failure() const {
    if (!is_set()) return std::nullopt;
    std::lock_guard const lock(mutex_);
    return failure_;
  }

 private:
  std::atomic<bool> is_set_{false};
  mutable std::mutex mutex_;
  std::optional<Failure> failure_;
};

}  // namespace chorus::engine
