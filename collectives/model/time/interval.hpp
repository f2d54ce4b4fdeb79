// Interval: arrival times of data in virtual time.
#pragma once

#include <algorithm>

namespace chorus::model {

// Arrival of the first and of the last segment of a range. They are equal for a range without segments, and for one
// that arrives as a whole.
struct Interval {
  double first_s = 0;
  double last_s = 0;
};

[[nodiscard]] inline Interval later(Interval const& a, Interval const& b) {
  return {std::max(a.first_s, b.first_s), std::max(a.last_s, b.last_s)};
}

}  // namespace chorus::model
