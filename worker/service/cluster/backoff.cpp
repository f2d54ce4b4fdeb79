#include "worker/service/cluster/backoff.hpp"

#include <algorithm>

#include "collectives/core/assert.hpp"

namespace chorus::service {

using std::chrono::milliseconds;

Backoff::Backoff(milliseconds shortest, milliseconds longest, std::uint64_t seed)
    : shortest_(shortest), longest_(longest), pause_(shortest), random_(seed) {
  CHORUS_ASSERT(shortest.count() > 0 && shortest <= longest, "a pause that can be doubled");
}

milliseconds Backoff::next() {
  auto const pause = part_of(pause_);
  pause_ = std::min(pause_ * 2, longest_);
  return pause;
}

milliseconds Backoff::part_of(milliseconds pause) {
  std::uniform_int_distribution<milliseconds::rep> part(pause.count() / 2, pause.count());
  return milliseconds(part(random_));
}

}  // namespace chorus::service
