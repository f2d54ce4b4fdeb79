#include "worker/api/members/epoch_end.hpp"

#include <algorithm>
#include <utility>

#include "worker/engine/failure/errc.hpp"

namespace chorus::embedded {

Status EpochEnd::standing() const {
  if (!is_over()) return ok();
  std::lock_guard const lock(mutex_);
  return *over_;
}

std::string EpochEnd::why() const {
  std::lock_guard const lock(mutex_);
  return over_ ? over_->detail : "";
}

std::vector<std::uint32_t> EpochEnd::culprits() const {
  std::lock_guard const lock(mutex_);
  return culprits_;
}

void EpochEnd::end(Error why, std::vector<std::uint32_t> culprits) {
  std::lock_guard const lock(mutex_);
  if (!over_) {
    over_ = std::move(why);
    std::sort(culprits.begin(), culprits.end());
    culprits_ = std::move(culprits);
  }
  is_over_.store(true, std::memory_order_release);
}

void EpochEnd::end_by(Error const& why, std::vector<std::uint32_t> const& culprits) {
  end(why, culprits);
  listeners_.tell(why, culprits);
  if (why.code != engine::EngineErrc::epoch_fenced && why.code != engine::EngineErrc::aborted)
    listeners_.report(culprits);
}

}  // namespace chorus::embedded
