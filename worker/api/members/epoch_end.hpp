// Whether an epoch of a group has ended for a member, and why.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "collectives/core/result.hpp"

namespace chorus::embedded {

// Thread-safe.
class EpochEnd {
 public:
  struct Listeners {
    // Tells the coordinator of a call that failed because of these ranks.
    std::function<void(std::vector<std::uint32_t> const& culprits)> report;
    // Tells the other members, which may have ended their part of that call well.
    std::function<void(Error const& why, std::vector<std::uint32_t> const& culprits)> tell;
  };
  explicit EpochEnd(Listeners listeners) : listeners_(std::move(listeners)) {}
  EpochEnd(EpochEnd const&) = delete;
  EpochEnd& operator=(EpochEnd const&) = delete;

  // A call has failed, or the epoch has ended: no call will succeed any more.
  [[nodiscard]] bool is_over() const { return is_over_.load(std::memory_order_acquire); }
  // Error of every call from now on.
  [[nodiscard]] Status standing() const;
  [[nodiscard]] std::string why() const;  // empty: it is not over
  // Ranks that the failure names, ascending; empty where no member is to blame.
  [[nodiscard]] std::vector<std::uint32_t> culprits() const;

  // Only the first reason is kept.
  void end(Error why, std::vector<std::uint32_t> culprits);
  // The failure of a call by which the epoch ends; reported unless the coordinator or this program has caused it.
  void end_by(Error const& why, std::vector<std::uint32_t> const& culprits);

 private:
  Listeners const listeners_;
  std::atomic<bool> is_over_{false};
  mutable std::mutex mutex_;
  std::optional<Error> over_;
  std::vector<std::uint32_t> culprits_;  // of the same failure
};

}  // namespace chorus::embedded
