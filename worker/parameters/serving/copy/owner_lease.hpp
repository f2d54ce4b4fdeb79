// The worker's lease at the coordinator, by the clock of this process. Owners take pushes only while it lives.
//
// The lease counts from the time at which its renewal was sent, less a margin for clocks that run at different rates.
// So it ends here before the coordinator finds that it is over. After that another worker may own the shards: this
// worker owns them again when the coordinator says so in the present term.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "http/message/message.hpp"

namespace chorus::parameters {

// Used on the control thread. A worker that has never had a lease may always take pushes.
class OwnerLease {
 public:
  // Renews the lease by a request that was sent at `sent`.
  void renew(http::TimePoint sent, std::chrono::milliseconds lease) { end_ = sent + lease - lease / margin; }
  // The coordinator has said that the lease is over.
  void end() {
    end_ = http::TimePoint();
    ++term_;
  }

  [[nodiscard]] bool lives() const { return !end_ || std::chrono::steady_clock::now() < *end_; }
  // Number of times that the coordinator has ended the lease.
  [[nodiscard]] std::uint64_t term() const { return term_; }

 private:
  static constexpr int margin = 16;
  std::optional<http::TimePoint> end_;
  std::uint64_t term_ = 0;
};

}  // namespace chorus::parameters
