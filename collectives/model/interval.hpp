// When data is there, in virtual time.
#pragma once

#include <algorithm>

namespace chorus::model {

// Of a range that flows in segments: when the first and when the last of them is there. What is not segmented, or is
// there as a whole, has both at once.
struct Interval {
  double first_s = 0;
  double last_s = 0;
};

[[nodiscard]] inline Interval later(Interval const& a, Interval const& b) {
  return {std::max(a.first_s, b.first_s), std::max(a.last_s, b.last_s)};
}

}  // namespace chorus::model
